//! Contends for the Lease, and says whether it was won.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease as Object, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::lease::{Action, Lease, Terms, View, step};

/// A contender.
pub struct Election {
    api: Api<Object>,
    name: String,
    me: String,
    terms: Terms,
}

impl Election {
    /// One who calls itself `me`, which nobody else may, and contends for the Lease of this name.
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &str, me: &str, terms: Terms) -> Self {
        let api = Api::namespaced(client, namespace);
        Self { api, name: name.to_owned(), me: me.to_owned(), terms }
    }

    /// Contends until `stop`, and then gives the Lease back, so that another need not wait. `leading` is true only while
    /// nobody else leads.
    pub async fn run(&self, leading: &watch::Sender<bool>, stop: impl Future<Output = ()>) {
        let mut view = View::default();
        tokio::select! {
            () = stop => {}
            () = self.contend(&mut view, leading) => {}
        }
        let was_leading = leading.send_replace(false);
        if was_leading && !matches!(timeout(self.terms.pause, self.release()).await, Ok(Ok(()))) {
            tracing::warn!("the lease could not be given back: another takes over when it is over");
        }
    }

    async fn release(&self) -> Result<(), kube::Error> {
        // Read once more: a renewal may have been under way.
        let lease = self.api.get(&self.name).await.map(|object| read(&object))?;
        if lease.holder == self.me {
            self.write(Some(&lease), "").await?;
        }
        Ok(())
    }

    async fn contend(&self, view: &mut View, leading: &watch::Sender<bool>) {
        let begun = Instant::now();
        let now = || begun.elapsed();
        self.look(view, begun).await;
        loop {
            match step(now(), view, &self.me, &self.terms) {
                Action::Wait(pause) => {
                    sleep(pause).await;
                    if !*leading.borrow() {
                        self.look(view, begun).await;
                    }
                }
                Action::StepDown => {
                    view.step_down();
                    leading.send_replace(false);
                    tracing::warn!(me = self.me, "leads no more");
                }
                Action::Take | Action::Renew => {
                    let sent = now();
                    // Whatever happens to this write, the leadership does not outlast its deadline.
                    let until = view.leads_until(&self.terms).unwrap_or(sent + self.terms.deadline);
                    let writing = self.write(view.lease(), &self.me);
                    match timeout_at(begun + until, timeout(self.terms.pause * 2, writing)).await {
                        Ok(Ok(Ok(lease))) => {
                            view.win(sent, now(), lease);
                            // Who leads on is not told again: it would begin anew with all that it does.
                            if leading.send_if_modified(|leads| !std::mem::replace(leads, true)) {
                                tracing::info!(me = self.me, "leads");
                            }
                        }
                        Ok(Ok(Err(error))) if !is_lost_race(&error) => {
                            tracing::warn!(%error, "the lease cannot be written");
                            self.retry(view, begun).await;
                        }
                        Ok(Ok(Err(_)) | Err(_)) => self.retry(view, begun).await,
                        Err(_) => {}
                    }
                }
            }
        }
    }

    /// Looks what became of a write that failed.
    async fn retry(&self, view: &mut View, begun: Instant) {
        let pause = self.terms.pause / 4;
        let until = view.leads_until(&self.terms).unwrap_or(begun.elapsed() + self.terms.deadline);
        let again = async {
            sleep(pause).await;
            self.look(view, begun).await;
        };
        // Not being able to look must not keep anybody leading.
        let _ = timeout_at(begun + until, again).await;
    }

    async fn look(&self, view: &mut View, begun: Instant) {
        match timeout(self.terms.pause, self.api.get_opt(&self.name)).await {
            Ok(Ok(found)) => view.see(begun.elapsed(), found.map(|object| read(&object))),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the lease cannot be read");
                sleep(self.terms.pause / 4).await;
            }
            Err(_) => tracing::warn!("the lease cannot be read: no answer"),
        }
    }

    /// Writes the lease over the one that was seen, or as a new one.
    async fn write(&self, over: Option<&Lease>, holder: &str) -> Result<Lease, kube::Error> {
        let now = Timestamp::now();
        let version = over.map(|lease| lease.version.clone()).filter(|version| !version.is_empty());
        let duration = if holder.is_empty() { Duration::from_secs(1) } else { self.terms.duration };
        let object = Object {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                resource_version: version,
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: i32::try_from(duration.as_secs().max(1)).ok(),
                renew_time: Some(MicroTime(now)),
                ..LeaseSpec::default()
            }),
        };
        let stored = match over {
            None => self.api.create(&PostParams::default(), &object).await?,
            Some(_) => self.api.replace(&self.name, &PostParams::default(), &object).await?,
        };
        Ok(read(&stored))
    }
}

fn is_lost_race(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

fn read(object: &Object) -> Lease {
    let spec = object.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Lease {
        holder: spec.holder_identity.unwrap_or_default(),
        duration: Duration::from_secs(seconds.unwrap_or(Terms::default().duration.as_secs())),
        version: object.metadata.resource_version.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
