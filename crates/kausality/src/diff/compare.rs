//! One manifest against its object.

use kausality_cluster::{Kind, Kinds};
use kausality_fields::{
    attribution::Claims,
    delegation::Delegation,
    fight::Fights,
    schema::GroupVersionKind,
    verdict::{Class, Finding, Report, Status, Subject, Verdict},
};
use serde_json::{Value, json};

use super::settle;
use crate::{
    live::{Failure, Force, Secrets, Server, Types, is_fact},
    manifests::Manifest,
    target,
};

/// What every comparison needs.
pub(super) struct Judge {
    pub(super) kinds: Kinds,
    pub(super) types: Types,
    /// Of objects that name none.
    pub(super) namespace: String,
    pub(super) delegations: Vec<Delegation>,
    pub(super) secrets: Secrets,
    pub(super) server: Server,
}

/// An object, and what became of its comparison.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    pub(super) file: String,
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Empty for kinds without.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) outcome: Outcome,
}

#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// It is there.
    Judged(Report),
    /// It is not there.
    Missing,
    /// It could not be compared, and why.
    Failed(String),
}

/// How often an object that changes in between is read again.
const ATTEMPTS: usize = 6;

/// Where an object is.
pub(super) struct Place {
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) url: String,
}

impl Judge {
    /// Compares a manifest with its object.
    pub(super) async fn compare(&self, manifest: Manifest, fights: &Fights) -> Compared {
        let text = |pointer: &str| manifest.text(pointer).to_owned();
        let mut compared = Compared {
            file: manifest.file.clone(),
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            outcome: Outcome::Missing,
        };
        compared.outcome = match self.place(&manifest).await {
            Ok(place) => {
                compared.namespace.clone_from(&place.namespace);
                self.judge(&manifest, &place, fights).await.unwrap_or_else(Outcome::Failed)
            }
            Err(why) => Outcome::Failed(why),
        };
        compared
    }

    /// Where the object of a manifest is, in the version that the manifest is written in.
    pub(super) async fn place(&self, manifest: &Manifest) -> Result<Place, String> {
        let api_version = manifest.text("/apiVersion");
        let kind = self.kinds.of_kind(api_version, manifest.text("/kind")).await;
        let mut kind = Kind::clone(&*kind.map_err(|error| error.to_string())?);
        kind.resource.api_version = api_version.to_owned();
        kind.resource.version = api_version.rsplit('/').next().unwrap_or_default().to_owned();
        let namespace = match manifest.text("/metadata/namespace") {
            _ if !kind.namespaced => String::new(),
            "" => self.namespace.clone(),
            named => named.to_owned(),
        };
        let url = target::api(&self.server.client, &kind, &namespace).resource_url().to_owned();
        Ok(Place { kind, namespace, url })
    }

    async fn judge(&self, manifest: &Manifest, place: &Place, fights: &Fights) -> Result<Outcome, String> {
        let status = self.status(manifest, place).await?;
        for _ in 0..ATTEMPTS {
            let Some(live) = self.live(manifest, place).await? else { return Ok(Outcome::Missing) };
            if let Some(report) = self.look(manifest, place, &live, status, fights).await? {
                return Ok(Outcome::Judged(report));
            }
        }
        Err("it changes faster than it can be compared: something writes to it all the time".to_owned())
    }

    async fn live(&self, manifest: &Manifest, place: &Place) -> Result<Option<Value>, String> {
        match self.server.get(&place.url, manifest.text("/metadata/name")).await {
            Ok(live) => Ok(Some(live)),
            Err(Failure::Status(status)) if status.is_not_found() => {
                // Else it is the version of the kind that is not found.
                match status.details.as_ref().is_some_and(|details| !details.name.is_empty()) {
                    true => Ok(None),
                    false => Err(format!(
                        "the API server does not serve {} in {}",
                        manifest.text("/kind"),
                        manifest.text("/apiVersion")
                    )),
                }
            }
            Err(Failure::Status(status)) => Err(status.message.clone()),
            Err(Failure::Silent(why)) => Err(why),
        }
    }

    /// How the status is written, which matters to those alone who declare one.
    async fn status(&self, manifest: &Manifest, place: &Place) -> Result<Status, String> {
        if manifest.object.get("status").is_none() {
            return Ok(Status::Apart);
        }
        let object = format!("{}/{}", place.url, manifest.text("/metadata/name"));
        match self.server.get(&object, "status").await {
            Err(Failure::Status(status)) if status.is_not_found() => Ok(Status::WithTheRest),
            // Who may not read the status alone: such a kind has one.
            Ok(_) | Err(Failure::Status(_)) => Ok(Status::Apart),
            Err(Failure::Silent(why)) => Err(why),
        }
    }

    /// What there is to say of an object as it was; `None` if it has changed since.
    async fn look(
        &self,
        manifest: &Manifest,
        place: &Place,
        live: &Value,
        status: Status,
        fights: &Fights,
    ) -> Result<Option<Report>, String> {
        let managed = live.pointer("/metadata/managedFields").map(Value::to_string);
        let claims = Claims::read(managed.as_deref()).map_err(|error| error.to_string())?;
        let gvk = GroupVersionKind::new(manifest.text("/apiVersion"), manifest.text("/kind"));
        let found = self.types.of(&self.server, &place.kind, &gvk).await;
        let subject = Subject {
            manager: &self.server.manager,
            declared: &manifest.object,
            live,
            claims: &claims,
            of: found.as_ref().map(|found| found.get()),
            status,
            delegations: &self.delegations,
            fights,
            redaction: &self.secrets.redaction(&place.kind.resource),
        };
        let mut report =
            subject.judge().map_err(|fault| format!("the manifest does not fit its kind: {fault}"))?;
        report.findings.retain(|finding| !is_fact(&finding.path, &manifest.object));
        if let Some(of) = subject.of.filter(|_| settle::is_open(&report)) {
            let name = manifest.text("/metadata/name");
            let applied = self.server.dry_run(&place.url, name, &manifest.object, Force::Yes).await;
            let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
            match applied {
                Ok(applied) if version(&applied) != version(live) => return Ok(None),
                Ok(applied) => settle::settle(&mut report, &self.server.manager, of, live, &applied),
                Err(Failure::Status(status)) => settle::leave_open(&mut report, &status.reason),
                Err(Failure::Silent(why)) => settle::leave_open(&mut report, &why),
            }
        }
        Ok(Some(report))
    }
}

impl Compared {
    /// `Deployment shop/web`.
    pub(super) fn title(&self) -> String {
        let separator = if self.namespace.is_empty() { "" } else { "/" };
        format!("{} {}{separator}{}", self.kind, self.namespace, self.name)
    }

    /// What there is to say about its fields.
    pub(super) fn findings(&self) -> &[Finding] {
        match &self.outcome {
            Outcome::Judged(report) => &report.findings,
            Outcome::Missing | Outcome::Failed(_) => &[],
        }
    }

    /// Whether it is not as declared, or there is no telling whose doing that is.
    pub(super) fn has_drifted(&self) -> bool {
        matches!(self.outcome, Outcome::Missing) || self.findings().iter().any(matters)
    }
}

/// Whether a field is not as its manager wants it, or will not stay. Where ownership cannot be told, values can.
pub(super) fn matters(finding: &Finding) -> bool {
    match finding.verdict.class() {
        Class::Drift => true,
        Class::Unknown => !matches!(finding.verdict, Verdict::Unknown { equal: true, .. }),
        Class::Clean => false,
    }
}

/// What a verdict means, for people.
pub(super) fn meaning(finding: &Finding) -> String {
    match &finding.verdict {
        Verdict::OwnDrift if finding.live.is_none() => "it is not there".to_owned(),
        Verdict::OwnDrift => "it has another value than declared".to_owned(),
        Verdict::Takeover { equal: true } => "others own it, with the declared value".to_owned(),
        Verdict::Takeover { equal: false } => "others own it, with another value".to_owned(),
        Verdict::Release { removed: true } => {
            "it is owned but not declared: the next apply removes it".to_owned()
        }
        Verdict::Release { removed: false } => {
            "it is owned but not declared: the next apply lets go of it".to_owned()
        }
        Verdict::CoOwned => "others own it too, with the same value".to_owned(),
        Verdict::Unowned => "it has the declared value, and nobody owns it".to_owned(),
        Verdict::Delegated => "it is left to others".to_owned(),
        Verdict::Fight(fight) => {
            format!("{} take it from each other ({} times)", fight.managers.join(" and "), fight.switches)
        }
        Verdict::Unknown { reason, .. } => format!("there is no telling: {reason}"),
    }
}

/// How many objects came out how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) drifted: usize,
    pub(super) missing: usize,
    pub(super) clean: usize,
    pub(super) failed: usize,
    /// Fields that have drifted.
    pub(super) fields: usize,
}

impl Summary {
    pub(super) fn of(compared: &[Compared]) -> Self {
        let mut summary = Self::default();
        for compared in compared {
            summary.fields += compared.findings().iter().filter(|finding| matters(finding)).count();
            match &compared.outcome {
                Outcome::Failed(_) => summary.failed += 1,
                Outcome::Missing => summary.missing += 1,
                Outcome::Judged(_) if compared.has_drifted() => summary.drifted += 1,
                Outcome::Judged(_) => summary.clean += 1,
            }
        }
        summary
    }

    /// As `kubectl diff` has it.
    pub(super) fn exit_code(self) -> u8 {
        match self {
            Self { failed: 1.., .. } => 2,
            Self { drifted: 0, missing: 0, .. } => 0,
            _ => 1,
        }
    }
}

/// All of it as JSON. What is no drift is left out unless `all` is asked for.
pub(super) fn document(manager: &str, compared: &[Compared], all: bool) -> Value {
    let object = |compared: &Compared| {
        let findings: Vec<Value> = compared
            .findings()
            .iter()
            .filter(|finding| all || finding.verdict.class() != Class::Clean)
            .map(|finding| {
                let mut line = serde_json::to_value(finding).unwrap_or_default();
                line["drift"] = matters(finding).into();
                line
            })
            .collect();
        let (state, error) = match &compared.outcome {
            Outcome::Failed(why) => ("error", Some(why)),
            Outcome::Missing => ("missing", None),
            Outcome::Judged(_) if compared.has_drifted() => ("drift", None),
            Outcome::Judged(_) => ("clean", None),
        };
        json!({"file": compared.file, "apiVersion": compared.api_version, "kind": compared.kind,
            "namespace": compared.namespace, "name": compared.name, "state": state, "error": error,
            "fields": findings})
    };
    let Summary { drifted, missing, clean, failed, fields } = Summary::of(compared);
    json!({"manager": manager, "objects": compared.iter().map(object).collect::<Vec<Value>>(),
        "summary": {"drifted": drifted, "missing": missing, "clean": clean, "failed": failed, "fields": fields}})
}
