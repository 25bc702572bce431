//! The sandbox as a `kube::Client` in the same process: no network, no TLS.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures::future::{BoxFuture, FutureExt as _};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use tower::Service;

use crate::answer::Body;
use crate::identity::User;
use crate::sandbox::Sandbox;

/// Sends requests to a sandbox as a user.
#[derive(Clone, Debug)]
struct AsUser {
    sandbox: Sandbox,
    user: User,
}

impl Sandbox {
    /// A client that acts as a user. Its requests carry no user agent unless it is given one, so that the manager of what it
    /// writes is `unknown` unless it says its name.
    pub fn client(&self, user: &User) -> kube::Client {
        kube::Client::new(AsUser { sandbox: self.clone(), user: user.clone() }, "default")
    }
}

impl Service<Request<kube::client::Body>> for AsUser {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let Self { sandbox, user } = self.clone();
        async move {
            let (mut parts, body) = request.into_parts();
            parts.extensions.insert(user);
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            Ok(sandbox.handle(Request::from_parts(parts, body)).await)
        }
        .boxed()
    }
}
