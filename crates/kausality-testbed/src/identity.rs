//! Who calls the API: tokens, kubeconfigs and clients.

use anyhow::{Context as _, Result};
use http::header::{HeaderValue, USER_AGENT};
use k8s_openapi::ByteString;
use kube::Client;
use kube::config::{AuthInfo, Config};
use rcgen::KeyPair;
use serde_json::{Value, json};

use crate::certificates::Certificates;

/// The group that may do everything, and that RBAC is not asked about.
pub const MASTERS: &str = "system:masters";

/// What clients made here call themselves.
const AGENT: &str = "kausality-testbed";

/// The user behind every impersonation.
const ADMIN: &str = "testbed:admin";

/// The user that kube-controller-manager starts as, and that the bootstrap roles of the API server know.
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";

/// The secrets of the two users that the API server knows by token. All others are impersonated.
pub(crate) struct Tokens {
    admin: String,
    controller_manager: String,
}

impl Tokens {
    pub(crate) fn generate() -> Result<Self> {
        Ok(Self { admin: secret()?, controller_manager: secret()? })
    }

    /// The token file of the API server: token, user, uid, groups.
    pub(crate) fn csv(&self) -> String {
        let Self { admin, controller_manager } = self;
        format!(
            "{admin},{ADMIN},{ADMIN},\"{MASTERS}\"\n{controller_manager},{CONTROLLER_MANAGER},{CONTROLLER_MANAGER}\n"
        )
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
    pub(crate) fn new(port: u16, certificates: &Certificates, tokens: Tokens) -> Self {
        let url = format!("https://127.0.0.1:{port}");
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
        self.connect(json!({ "token": self.tokens.admin }))
    }

    /// A client of any user.
    pub(crate) fn impersonate(&self, user: &str, groups: &[&str]) -> Result<Client> {
        self.connect(json!({ "token": self.tokens.admin, "as": user, "as-groups": groups }))
    }

    /// The kubeconfig of the administrator.
    pub(crate) fn admin_kubeconfig(&self) -> String {
        self.kubeconfig(&self.tokens.admin)
    }

    /// The kubeconfig of kube-controller-manager.
    pub(crate) fn controller_manager_kubeconfig(&self) -> String {
        self.kubeconfig(&self.tokens.controller_manager)
    }

    fn connect(&self, credentials: Value) -> Result<Client> {
        let url = self.url.parse().with_context(|| format!("reading {} as a URL", self.url))?;
        let mut config = Config::new(url);
        config.root_cert = Some(vec![self.ca_der.clone()]);
        config.auth_info = serde_json::from_value::<AuthInfo>(credentials).context("making credentials")?;
        config.headers.push((USER_AGENT, HeaderValue::from_static(AGENT)));
        Client::try_from(config).context("making a client of the control plane")
    }

    /// JSON is YAML, so all that reads kubeconfigs reads this.
    fn kubeconfig(&self, token: &str) -> String {
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
    use kube::config::{KubeConfigOptions, Kubeconfig};

    use super::*;

    fn access() -> Access {
        Access::new(6443, &Certificates::generate().unwrap(), Tokens::generate().unwrap())
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
    }

    #[test]
    fn the_token_file_has_a_line_for_each_user() {
        let tokens = Tokens { admin: "a".to_owned(), controller_manager: "c".to_owned() };
        assert_eq!(
            tokens.csv(),
            "a,testbed:admin,testbed:admin,\"system:masters\"\n\
             c,system:kube-controller-manager,system:kube-controller-manager\n"
        );
    }

    #[tokio::test]
    async fn a_client_reads_the_kubeconfig_and_trusts_its_authority() {
        let access = access();
        let kubeconfig = Kubeconfig::from_yaml(&access.admin_kubeconfig()).unwrap();
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
