//! Where backends listen, and whom they let in.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::Result;
use axum::Router;
use clap::Args;
use kausality_report::receive::Guard;
use kausality_webhook::{Certificates, Site};

use crate::webhook::interrupted;

/// Where to listen, and whom to let in.
#[derive(Clone, Debug, Args)]
pub(super) struct Reception {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    bind_address: SocketAddr,

    /// The certificate to serve, PEM; read again when it changes. Without one, HTTP is served
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,

    /// The private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,

    /// A file with the bearer token that requests must have; read again when it changes
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// A file with the key with which requests must be signed; read again when it changes
    #[arg(long, value_name = "FILE")]
    hmac_key_file: Option<PathBuf>,

    /// Let anybody in, even from other machines
    #[arg(long, conflicts_with_all = ["token_file", "hmac_key_file"])]
    insecure_no_auth: bool,
}

impl Reception {
    /// Who is let in.
    pub(super) fn guard(&self) -> Result<Arc<Guard>> {
        let (token, key) = (self.token_file.clone(), self.hmac_key_file.clone());
        Ok(Arc::new(Guard::new(self.bind_address, token, key, self.insecure_no_auth)?))
    }

    /// Serves until it is told to stop.
    pub(super) async fn serve(&self, router: Router) -> Result<()> {
        let certificates = match (&self.tls_cert_file, &self.tls_private_key_file) {
            (Some(certificate), Some(key)) => Some(Certificates::from_files(certificate, key)?),
            _ => None,
        };
        let site = Site::listen(self.bind_address, certificates.as_ref()).await?;
        tracing::info!(address = %site.address(), tls = certificates.is_some(), "listening");
        site.serve(router, interrupted()).await;
        Ok(())
    }
}
