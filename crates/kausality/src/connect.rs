//! The way to a cluster, from the flags that kubectl has too.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use kube::{
    Client,
    config::{KubeConfigOptions, Kubeconfig},
};

/// Which cluster, and as whom.
#[derive(Clone, Debug, Default, Args)]
pub struct Connection {
    /// The kubeconfig file to use, if not running in the cluster
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig file to use
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// The user to act as
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,

    /// A group to act as; may be given several times
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,
}

impl Connection {
    /// The flags that say the same.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let flag = |name: &str, value: &str| [name.to_owned(), value.to_owned()];
        let mut flags = Vec::new();
        flags.extend(self.kubeconfig.iter().flat_map(|file| flag("--kubeconfig", &file.to_string_lossy())));
        flags.extend(self.context.iter().flat_map(|context| flag("--context", context)));
        flags.extend(self.user.iter().flat_map(|user| flag("--as", user)));
        flags.extend(self.groups.iter().flat_map(|group| flag("--as-group", group)));
        flags
    }

    /// A client that calls itself `kausality-<command>`. Its calls have no time limit of their own.
    ///
    /// # Errors
    /// If there is no cluster to be found, or its configuration makes no sense.
    pub async fn client(&self, command: &str) -> Result<Client> {
        Ok(Client::try_from(self.named(command).await?)?)
    }

    /// The same as [`Self::client`], and another that uses each connection once.
    ///
    /// # Errors
    /// If there is no cluster to be found, or its configuration makes no sense.
    pub async fn clients(&self, command: &str) -> Result<(Client, Client)> {
        let config = self.named(command).await?;
        let mut fresh = config.clone();
        fresh.headers.push((http::header::CONNECTION, http::HeaderValue::from_static("close")));
        Ok((Client::try_from(config)?, Client::try_from(fresh)?))
    }

    async fn named(&self, command: &str) -> Result<kube::Config> {
        let mut config = self.config().await?;
        if self.user.is_some() {
            config.auth_info.impersonate = self.user.clone();
            config.auth_info.impersonate_groups =
                Some(self.groups.clone()).filter(|groups| !groups.is_empty());
        }
        // Watches are long-lived; everything else has a deadline of its own.
        config.read_timeout = None;
        let name = format!("kausality-{command}/{}", env!("CARGO_PKG_VERSION"));
        config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_str(&name)?));
        Ok(config)
    }

    async fn config(&self) -> Result<kube::Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let read = match &self.kubeconfig {
            Some(file) => {
                Kubeconfig::read_from(file).with_context(|| format!("cannot read {}", file.display()))?
            }
            None if self.context.is_some() => Kubeconfig::read()?,
            None => {
                return kube::Config::infer().await.context("no cluster: give --kubeconfig, or run in one");
            }
        };
        if let Some(wanted) = &self.context {
            has_context(&read, wanted)?;
        }
        Ok(kube::Config::from_custom_kubeconfig(read, &options).await?)
    }
}

/// That there is such a context.
fn has_context(config: &Kubeconfig, wanted: &str) -> Result<()> {
    let names: Vec<&str> = config.contexts.iter().map(|context| context.name.as_str()).collect();
    if names.contains(&wanted) {
        return Ok(());
    }
    match names.is_empty() {
        true => bail!("the kubeconfig has no context {wanted:?}, and no other"),
        false => bail!("the kubeconfig has no context {wanted:?}: it has {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_that_is_not_there_is_told_with_those_that_are() {
        let config = |names: &[&str]| -> Kubeconfig {
            let contexts: Vec<_> = names.iter().map(|name| serde_json::json!({"name": name})).collect();
            serde_json::from_value(serde_json::json!({"contexts": contexts})).unwrap()
        };
        let told = |names: &[&str]| has_context(&config(names), "zz").unwrap_err().to_string();
        assert_eq!(told(&["a", "b"]), "the kubeconfig has no context \"zz\": it has a, b");
        assert_eq!(told(&[]), "the kubeconfig has no context \"zz\", and no other");
        assert!(has_context(&config(&["a", "zz"]), "zz").is_ok());
    }
}
