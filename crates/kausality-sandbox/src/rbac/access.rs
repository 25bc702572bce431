//! What somebody wants to do, and how that is asked and refused.

use std::borrow::Cow;

use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};

use crate::identity::User;
use crate::request::{self, Query};
use crate::sandbox::Sandbox;
use crate::status::{Failure, Subject};

use super::Answer;

/// A verb, and what it is done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access<'a> {
    pub(crate) verb: Cow<'a, str>,
    pub(crate) target: Target<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// What is no resource.
    Path(Cow<'a, str>),
    Resource(Resource<'a>),
}

/// What is not set is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resource<'a> {
    pub(crate) group: Cow<'a, str>,
    pub(crate) resource: Cow<'a, str>,
    pub(crate) subresource: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) namespace: Cow<'a, str>,
}

impl<'a> Access<'a> {
    /// What a request wants.
    pub(crate) fn of_request(method: &Method, path: &'a str, query: &str) -> Self {
        let Some(target) = request::target(path) else {
            let verb = method.as_str().to_lowercase().into();
            return Self { verb, target: Target::Path(path.into()) };
        };
        let query = Query::parse(query);
        let selected = query.get("fieldSelector").strip_prefix("metadata.name=");
        let collection = target.name.is_empty();
        let verb = match method.as_str() {
            "GET" | "HEAD" if query.flag("watch") => "watch",
            "GET" | "HEAD" if collection => "list",
            "GET" | "HEAD" => "get",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if collection => "deletecollection",
            "DELETE" => "delete",
            _ => "",
        };
        // Who asks for one object by its name may do so if that one may be read.
        let name = match selected {
            Some(selected) if collection && !selected.contains(',') => {
                selected.trim_start_matches('=').to_owned()
            }
            _ => target.name,
        };
        // A namespace is in itself.
        let namespace = match target.plural.as_str() {
            "namespaces" if target.group.is_empty() && !collection => name.clone(),
            _ => target.namespace,
        };
        Self {
            verb: verb.into(),
            target: Target::Resource(Resource {
                group: target.group.into(),
                resource: target.plural.into(),
                subresource: target.subresource.into(),
                name: name.into(),
                namespace: namespace.into(),
            }),
        }
    }

    /// What a review asks about, which has the attributes of a resource or those of a path.
    pub(crate) fn of_review(spec: &'a Value) -> Self {
        let text = |value: &'a Value, key: &str| Cow::Borrowed(value[key].as_str().unwrap_or_default());
        let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
        if path.is_object() {
            return Self { verb: text(path, "verb"), target: Target::Path(text(path, "path")) };
        }
        Self {
            verb: text(resource, "verb"),
            target: Target::Resource(Resource {
                group: text(resource, "group"),
                resource: text(resource, "resource"),
                subresource: text(resource, "subresource"),
                name: text(resource, "name"),
                namespace: text(resource, "namespace"),
            }),
        }
    }

    pub(super) fn namespace(&self) -> &str {
        match &self.target {
            Target::Path(_) => "",
            Target::Resource(resource) => &resource.namespace,
        }
    }

    fn impersonation(group: &'a str, resource: &'a str, name: &'a str) -> Self {
        let target = Resource {
            group: group.into(),
            resource: resource.into(),
            name: name.into(),
            ..Resource::default()
        };
        Self { verb: "impersonate".into(), target: Target::Resource(target) }
    }

    /// The refusal.
    fn refused(&self, user: &User, reason: &str) -> Failure {
        let Self { verb, target } = self;
        let (subject, what) = match target {
            Target::Path(path) => (Subject::default(), format!("path {path:?}")),
            Target::Resource(Resource { group, resource, subresource, name, namespace }) => {
                let subject =
                    Subject { group: group.to_string(), kind: resource.to_string(), name: name.to_string() };
                let part = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
                let place = if namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace {namespace:?}")
                };
                (
                    subject,
                    format!("resource {:?} in API group {group:?} {place}", format!("{resource}{part}")),
                )
            }
        };
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let why = format!("User {:?} cannot {verb} {what}{reason}", user.name);
        if subject.kind.is_empty() {
            let details = Some(Value::Object(Map::new()));
            return Failure { details, ..Failure::new(403, "Forbidden", format!("forbidden: {why}")) };
        }
        Failure::forbidden(&subject, &why)
    }
}

impl Sandbox {
    /// Whether a user may do something. Everybody may do all where there is no RBAC.
    pub(crate) fn allows(&self, user: &User, access: &Access<'_>) -> Answer {
        let Some(authorizer) = &self.inner.authorizer else {
            return Answer { allowed: true, reason: String::new() };
        };
        let index = authorizer.index(&self.state().store);
        index.allows(user, access)
    }

    /// Refuses what a user may not do.
    pub(crate) fn authorize(&self, user: &User, access: &Access<'_>) -> Result<(), Failure> {
        let Answer { allowed, reason } = self.allows(user, access);
        if allowed { Ok(()) } else { Err(access.refused(user, &reason)) }
    }

    /// Refuses to let a user act as another whom it may not act as.
    pub(crate) fn authorize_impersonation(&self, headers: &HeaderMap, user: &User) -> Result<(), Failure> {
        if self.inner.authorizer.is_none() {
            return Ok(());
        }
        const AUTHENTICATION: &str = "authentication.k8s.io";
        for (key, value) in headers {
            let Ok(value) = value.to_str() else { continue };
            let access = match key.as_str() {
                "impersonate-user" => match service_account(value) {
                    Some((namespace, name)) => {
                        let mut access = Access::impersonation("", "serviceaccounts", name);
                        if let Target::Resource(resource) = &mut access.target {
                            resource.namespace = namespace.into();
                        }
                        access
                    }
                    None => Access::impersonation("", "users", value),
                },
                "impersonate-group" => Access::impersonation("", "groups", value),
                "impersonate-uid" => Access::impersonation(AUTHENTICATION, "uids", value),
                key => match key.strip_prefix("impersonate-extra-") {
                    None => continue,
                    Some(extra) => {
                        let mut access = Access::impersonation(AUTHENTICATION, "userextras", value);
                        if let Target::Resource(resource) = &mut access.target {
                            resource.subresource = extra.to_owned().into();
                        }
                        access
                    }
                },
            };
            self.authorize(user, &access)?;
        }
        Ok(())
    }

    /// What a user may do in a namespace, as a SelfSubjectRulesReview lists it.
    pub(crate) fn rules(&self, user: &User, namespace: &str) -> Value {
        let Some(authorizer) = &self.inner.authorizer else { return everything() };
        if user.groups.iter().any(|group| group == crate::MASTERS) {
            return everything();
        }
        let index = authorizer.index(&self.state().store);
        let rules = index.rules(user, namespace);
        let (resources, others): (Vec<_>, Vec<_>) = rules.into_iter().partition(|rule| rule.paths.is_empty());
        json!({"incomplete": false, "resourceRules": resources, "nonResourceRules": others})
    }
}

fn everything() -> Value {
    json!({
        "incomplete": false,
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    })
}

fn service_account(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("system:serviceaccount:")?.split_once(':')
}
