//! Connections to an endpoint, and what TLS needs for them.

use std::{error::Error as _, path::Path, sync::Arc, time::Duration};

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use super::Fault;
use crate::{endpoint::Files, secret};

/// How long a connection is kept open that nobody uses.
const IDLE: Duration = Duration::from_secs(30);

/// What is in the files that TLS needs. No `Debug`: one is a key.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Material {
    is_tls: bool,
    ca: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Connections that were set up with this material.
pub(super) struct Connection {
    material: Material,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Material {
    pub(super) fn read(files: &Files, is_tls: bool) -> Result<Self, Fault> {
        let read =
            |field: &'static str, path: &Path| secret::read(path).map_err(|bad| (field, bad.to_string()));
        let ca = files.ca.as_deref().map(|path| read("caFile", path)).transpose()?;
        let identity = match &files.identity {
            Some((certificate, key)) => Some((read("certFile", certificate)?, read("keyFile", key)?)),
            None => None,
        };
        Ok(Self { is_tls, ca, identity })
    }

    fn config(&self) -> Result<ClientConfig, Fault> {
        let unusable = |error: rustls::Error| ("url", format!("TLS cannot be set up: {error}"));
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let builder = match &self.ca {
            Some(ca) => builder.with_root_certificates(roots(ca)?),
            // Without TLS nobody is trusted, and what the system trusts does not matter.
            None if !self.is_tls => builder.with_root_certificates(RootCertStore::empty()),
            None => builder.with_native_roots().map_err(|error| {
                ("caFile", format!("is missing, and this system has no CAs to trust instead: {error}"))
            })?,
        };
        match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some((certificate, key)) => {
                let chain = certificates(certificate)
                    .ok_or(("certFile", "holds no certificate in PEM form".to_owned()))?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|_| ("keyFile", "holds no private key in PEM form".to_owned()))?;
                let unusable = |error| ("certFile", format!("cannot be used with keyFile: {error}"));
                builder.with_client_auth_cert(chain, key).map_err(unusable)
            }
        }
    }
}

impl Connection {
    pub(super) fn new(material: Material) -> Result<Self, Fault> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(material.config()?)
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Ok(Self { material, client })
    }

    pub(super) fn is_of(&self, material: &Material) -> bool {
        self.material == *material
    }

    /// Sends a request. The error is for people, and names no URL.
    pub(super) async fn request(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
        self.client.request(request).await.map_err(|error| {
            let what = if error.is_connect() { "cannot connect" } else { "the connection broke" };
            // The last cause is the one that a person can do something about.
            let mut cause = error.source();
            while let Some(deeper) = cause.and_then(|cause| cause.source()) {
                cause = Some(deeper);
            }
            cause.map_or_else(|| what.to_owned(), |cause| format!("{what}: {cause}"))
        })
    }
}

fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
    Some(all).filter(|all| !all.is_empty())
}

fn roots(pem: &[u8]) -> Result<RootCertStore, Fault> {
    let mut roots = RootCertStore::empty();
    let all = certificates(pem).ok_or(("caFile", "holds no certificate in PEM form".to_owned()))?;
    for certificate in all {
        let unusable = |error| ("caFile", format!("holds a certificate that cannot be used: {error}"));
        roots.add(certificate).map_err(unusable)?;
    }
    Ok(roots)
}
