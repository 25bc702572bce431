//! Who calls the API: tokens, kubeconfigs and clients.

use anyhow::{Context as _, Result};
use http::header::{HeaderValue, USER_AGENT};
use k8s_openapi::ByteString;
use kube::Client;
use kube::config::{AuthInfo, Config};
use rcgen::KeyPair;
use serde_json::{Value, json};

use crate::certificates::Certificates;
use crate::flags::Site;

/// The group that may do everything, and that RBAC is not asked about.
pub const MASTERS: &str = "system:masters";

/// The name of the node in a [`Node`](crate::Node).
pub(crate) const NODE: &str = "node-1";

/// What clients made here call themselves.
const AGENT: &str = "kausality-testbed";

/// A user that the API server knows by token. All others are impersonated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// Behind every impersonation.
    Admin,
    // The bootstrap roles of the API server know these.
    ControllerManager,
    Scheduler,
    Kubelet,
    Proxy,
}

impl User {
    const ALL: [Self; 5] =
        [Self::Admin, Self::ControllerManager, Self::Scheduler, Self::Kubelet, Self::Proxy];

    fn name(self) -> String {
        match self {
            Self::Admin => "testbed:admin".to_owned(),
            Self::ControllerManager => "system:kube-controller-manager".to_owned(),
            Self::Scheduler => "system:kube-scheduler".to_owned(),
            Self::Kubelet => format!("system:node:{NODE}"),
            Self::Proxy => "system:kube-proxy".to_owned(),
        }
    }

    fn group(self) -> Option<&'static str> {
        match self {
            Self::Admin => Some(MASTERS),
            Self::Kubelet => Some("system:nodes"),
            Self::ControllerManager | Self::Scheduler | Self::Proxy => None,
        }
    }
}

/// The secrets of those users, in the order of [`User::ALL`].
pub(crate) struct Tokens([String; 5]);

impl Tokens {
    pub(crate) fn generate() -> Result<Self> {
        Ok(Self([secret()?, secret()?, secret()?, secret()?, secret()?]))
    }

    /// The token file of the API server: token, user, uid, groups.
    pub(crate) fn csv(&self) -> String {
        let line = |user: User| {
            let (token, name) = (self.of(user), user.name());
            let group = user.group().map(|group| format!(",\"{group}\"")).unwrap_or_default();
            format!("{token},{name},{name}{group}\n")
        };
        User::ALL.into_iter().map(line).collect()
    }

    fn of(&self, user: User) -> &str {
        let [admin, controller_manager, scheduler, kubelet, proxy] = &self.0;
        match user {
            User::Admin => admin,
            User::ControllerManager => controller_manager,
            User::Scheduler => scheduler,
            User::Kubelet => kubelet,
            User::Proxy => proxy,
        }
    }
}

/// Where the API server is, how to trust it, and the tokens that it knows.
pub(crate) struct Access {
    url: String,
    ca_pem: String,
    ca_der: Vec<u8>,
    tokens: Tokens,
}

impl Access {
    pub(crate) fn new(site: Site, certificates: &Certificates, tokens: Tokens) -> Self {
        let url = format!("https://{}:{}", site.address, site.apiserver);
        Self { url, ca_pem: certificates.ca_pem.clone(), ca_der: certificates.ca_der.clone(), tokens }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// A client of the administrator.
    pub(crate) fn admin(&self) -> Result<Client> {
        self.connect(json!({ "token": self.tokens.of(User::Admin) }))
    }

    /// A client of any user.
    pub(crate) fn impersonate(&self, user: &str, groups: &[&str]) -> Result<Client> {
        self.connect(json!({ "token": self.tokens.of(User::Admin), "as": user, "as-groups": groups }))
    }

    fn connect(&self, credentials: Value) -> Result<Client> {
        let url = self.url.parse().with_context(|| format!("reading {} as a URL", self.url))?;
        let mut config = Config::new(url);
        config.root_cert = Some(vec![self.ca_der.clone()]);
        config.auth_info = serde_json::from_value::<AuthInfo>(credentials).context("making credentials")?;
        config.headers.push((USER_AGENT, HeaderValue::from_static(AGENT)));
        Client::try_from(config).context("making a client of the control plane")
    }

    /// The kubeconfig of one of the users above.
    pub(crate) fn kubeconfig_of(&self, user: User) -> String {
        self.kubeconfig(self.tokens.of(user))
    }

    /// The kubeconfig of the user whose token this is. JSON is YAML, so all that reads kubeconfigs reads this.
    pub(crate) fn kubeconfig(&self, token: &str) -> String {
        // Written in base64.
        let ca = ByteString(self.ca_pem.clone().into_bytes());
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": "testbed",
                "cluster": { "server": self.url, "certificate-authority-data": ca },
            }],
            "users": [{ "name": "testbed", "user": { "token": token } }],
            "contexts": [{ "name": "testbed", "context": { "cluster": "testbed", "user": "testbed" } }],
            "current-context": "testbed",
        });
        format!("{config:#}\n")
    }
}

/// A token that nobody can guess: the x coordinate of a public key that is never shown.
fn secret() -> Result<String> {
    let key = KeyPair::generate().context("making a token")?;
    // The first byte only says that both coordinates follow.
    Ok(key.public_key_raw().iter().skip(1).take(32).map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use kube::config::{KubeConfigOptions, Kubeconfig};

    use super::*;

    fn access() -> Access {
        let site = Site { address: Ipv4Addr::LOCALHOST, etcd: 2379, apiserver: 6443 };
        Access::new(site, &Certificates::generate(site.names()).unwrap(), Tokens::generate().unwrap())
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
    }

    #[test]
    fn the_token_file_has_a_line_for_each_user() {
        let tokens = Tokens(["a", "c", "s", "k", "p"].map(str::to_owned));
        assert_eq!(
            tokens.csv(),
            "a,testbed:admin,testbed:admin,\"system:masters\"\n\
             c,system:kube-controller-manager,system:kube-controller-manager\n\
             s,system:kube-scheduler,system:kube-scheduler\n\
             k,system:node:node-1,system:node:node-1,\"system:nodes\"\n\
             p,system:kube-proxy,system:kube-proxy\n"
        );
    }

    #[tokio::test]
    async fn a_client_reads_the_kubeconfig_and_trusts_its_authority() {
        let access = access();
        let kubeconfig = Kubeconfig::from_yaml(&access.kubeconfig_of(User::Admin)).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        assert_eq!(config.cluster_url, "https://127.0.0.1:6443/");
        assert_eq!(config.root_cert, Some(vec![access.ca_der]));
    }

    #[tokio::test]
    async fn any_user_has_a_client() {
        assert!(access().impersonate("system:serviceaccount:team:robot", &["a", "b"]).is_ok());
        assert!(access().admin().is_ok());
    }
}
