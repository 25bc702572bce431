//! What the server says of itself: groups, resources, version, health.

use std::sync::Arc;

use http::{Method, Response, request::Parts};
use serde_json::{Value, json};

use crate::aggregation;
use crate::answer::{self, Body};
use crate::kinds::{Definition, Registry, api_version};
use crate::request::{text, wants_aggregated};
use crate::sandbox::Sandbox;
use crate::status::Failure;

/// The version that the sandbox behaves like.
pub const VERSION: &str = "v1.35.8";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const OPENAPI: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Whether everybody may see a path.
pub(crate) fn is_public(path: &str) -> bool {
    let public = ["/healthz", "/livez", "/readyz"];
    path == "/version" || public.iter().any(|start| path == *start || path.starts_with(&format!("{start}/")))
}

impl Sandbox {
    /// Answers what is not about a resource.
    pub(crate) fn discover(&self, parts: &Parts) -> Response<Body> {
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return answer::failure(&Failure::method_not_allowed());
        }
        let registry = Arc::clone(&self.state().registry);
        let aggregated = wants_aggregated(&parts.headers);
        let path: Vec<&str> = parts.uri.path().split('/').filter(|part| !part.is_empty()).collect();
        if parts.method == Method::HEAD && !aggregated && !has_head(&path, &registry) {
            return answer::failure(&Failure::method_not_allowed());
        }
        let found = match path.as_slice() {
            [] => Some(root(&registry)),
            ["api" | "apis"] if aggregated => {
                let core = path == ["api"];
                let list = registry.told(core, || aggregate(&registry, core).to_string().into());
                return answer::whole(200, AGGREGATED, list);
            }
            ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:443"}]})),
            ["apis"] => {
                Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups(&registry)}))
            }
            ["apis", group, version] if registry.is_elsewhere(group, version) => {
                return aggregation::unavailable();
            }
            ["api", "v1"] => resources(&registry, "", "v1"),
            ["apis", group] => groups(&registry).into_iter().find(|it| it["name"] == *group).map(|mut it| {
                it["kind"] = "APIGroup".into();
                it["apiVersion"] = "v1".into();
                it
            }),
            ["apis", group, version] => resources(&registry, group, version),
            ["version"] => Some(version()),
            ["healthz" | "livez" | "readyz", ..] => return answer::plain(200, "ok"),
            ["metrics"] => return answer::plain(200, self.metrics()),
            ["openapi", "v2"] => {
                let accept = text(&parts.headers, "accept");
                if accept.contains("protobuf") && !accept.contains("json") {
                    return answer::whole(200, OPENAPI, crate::openapi::v2_protobuf(&registry).into());
                }
                Some(crate::openapi::v2(&registry))
            }
            ["openapi", "v3"] => Some(crate::openapi::index(&registry)),
            ["openapi", "v3", "api", version] => crate::openapi::v3(&registry, "", version),
            ["openapi", "v3", "apis", group, version] => crate::openapi::v3(&registry, group, version),
            _ => None,
        };
        match found {
            Some(found) => answer::json(200, &found),
            None if path.first().is_some_and(|first| *first == "api" || *first == "apis") => {
                answer::failure(&Failure::no_resource())
            }
            None => answer::plain(404, "404 page not found\n"),
        }
    }

    fn metrics(&self) -> String {
        let revision = self.state().store.revision();
        format!(
            "# HELP sandbox_revision The number of writes.\n# TYPE sandbox_revision counter\nsandbox_revision {revision}\n\
             # HELP sandbox_calls The number of calls.\n# TYPE sandbox_calls counter\nsandbox_calls {}\n",
            self.audited()
        )
    }
}

/// Whether a path can be asked for without a body. Those that a real API server routes by their methods cannot.
fn has_head(path: &[&str], registry: &Registry) -> bool {
    let is_custom = |definition: &Arc<Definition>| definition.is_custom();
    match path {
        ["version"] | ["api", ..] => false,
        ["apis", group, version] => registry.of_version(group, version).any(is_custom),
        _ => true,
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "35", "gitVersion": VERSION, "gitCommit": "sandbox", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "kausality/sandbox",
    })
}

fn root(registry: &Registry) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (group, versions) in registry.groups().into_iter().filter(|(group, _)| !group.is_empty()) {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
    }
    paths.extend(
        ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            .map(str::to_owned),
    );
    json!({"paths": paths})
}

fn groups(registry: &Registry) -> Vec<Value> {
    let groups = registry.groups().into_iter().filter(|(group, _)| !group.is_empty());
    groups
        .map(|(group, versions)| {
            let entry =
                |version: &&str| json!({"groupVersion": api_version(group, version), "version": version});
            let versions: Vec<_> = versions.iter().map(entry).collect();
            json!({"name": group, "preferredVersion": versions.first(), "versions": versions})
        })
        .collect()
}

fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for definition in registry.of_version(group, version) {
        resources.push(resource(definition));
        for part in definition.subresources() {
            let mut entry = json!({"name": format!("{}/{}", definition.plural, part.name), "singularName": "",
                "namespaced": definition.namespaced, "kind": part.kind, "verbs": part.verbs});
            if part.group != definition.group || part.version != definition.version {
                entry["group"] = part.group.into();
                entry["version"] = part.version.into();
            }
            resources.push(entry);
        }
    }
    if resources.is_empty() {
        return None;
    }
    let version = api_version(group, version);
    Some(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}),
    )
}

fn resource(definition: &Definition) -> Value {
    let mut entry = json!({
        "name": definition.plural, "singularName": definition.singular, "namespaced": definition.namespaced,
        "kind": definition.kind, "verbs": definition.verbs(),
    });
    if !definition.short_names.is_empty() {
        entry["shortNames"] = json!(definition.short_names);
    }
    if !definition.categories.is_empty() {
        entry["categories"] = json!(definition.categories);
    }
    entry
}

/// Discovery in one piece: of the core group, or of all others.
fn aggregate(registry: &Registry, core: bool) -> Value {
    let groups = registry.groups().into_iter().filter(|(group, _)| group.is_empty() == core);
    let items: Vec<_> = groups
        .map(|(group, versions)| {
            let versions: Vec<_> = versions
                .iter()
                .map(|version| {
                    if registry.is_elsewhere(group, version) {
                        return json!({"version": version, "freshness": "Stale"});
                    }
                    let resources: Vec<_> =
                        registry.of_version(group, version).map(|it| aggregated(it)).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if core { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated(definition: &Definition) -> Value {
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let subresources: Vec<_> = definition
        .subresources()
        .iter()
        .map(|part| {
            json!({"subresource": part.name, "responseKind": kind(part.group, part.version, part.kind), "verbs": part.verbs})
        })
        .collect();
    let mut entry = json!({
        "resource": definition.plural, "singularResource": definition.singular,
        "responseKind": kind(&definition.group, &definition.version, &definition.kind),
        "scope": if definition.namespaced { "Namespaced" } else { "Cluster" }, "verbs": definition.verbs(),
    });
    if !definition.short_names.is_empty() {
        entry["shortNames"] = json!(definition.short_names);
    }
    if !definition.categories.is_empty() {
        entry["categories"] = json!(definition.categories);
    }
    if !subresources.is_empty() {
        entry["subresources"] = json!(subresources);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::User;
    use http::{Request, header};
    use http_body_util::BodyExt as _;
    use hyper::body::Bytes;

    async fn ask(sandbox: &Sandbox) -> Bytes {
        let request =
            Request::get("/apis").header(header::ACCEPT, AGGREGATED).extension(User::admin("alice"));
        let answer = sandbox.handle(request.body(Bytes::new()).unwrap()).await;
        answer.into_body().collect().await.unwrap().to_bytes()
    }

    /// It is asked for all the time, and seldom another.
    #[tokio::test]
    async fn what_is_served_is_written_down_once() {
        let sandbox = Sandbox::default();
        let first = ask(&sandbox).await;
        assert_eq!(first.as_ptr(), ask(&sandbox).await.as_ptr());
        let api = ("metrics.k8s.io".to_owned(), "v1beta1".to_owned());
        std::sync::Arc::make_mut(&mut sandbox.state().registry).leave(api, true);
        let then = ask(&sandbox).await;
        assert!(!String::from_utf8_lossy(&first).contains("metrics.k8s.io"));
        assert!(String::from_utf8_lossy(&then).contains("metrics.k8s.io"));
    }
}
