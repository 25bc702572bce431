//! An object, its owners and its types, without an API server.

#![allow(dead_code, reason = "not every test uses all of it")]
use kausality_fields::attribution::{Claim, Claims, Owner};
use kausality_fields::delegation::Delegation;
use kausality_fields::fight::Fights;
use kausality_fields::managed::Operation;
use kausality_fields::ownership::{Force, Managers, Rules, Typed};
use kausality_fields::schema::{GroupVersionKind, Kinds, Schema, TypeRef, openapi};
use kausality_fields::typed::{Fault, Type};
use kausality_fields::verdict::{Projection, Report, Status, Subject};
use kausality_fields::{FieldSet, Redaction};
use serde_json::{Value, json};

/// Manager, operation, subresource.
pub(crate) type Id = (String, Operation, String);

/// One object and who owns what of it.
pub(crate) struct World {
    pub(crate) schema: Schema,
    pub(crate) of: TypeRef,
    pub(crate) live: Value,
    pub(crate) managers: Managers<Id>,
    pub(crate) version: String,
}

impl World {
    /// There is no object yet.
    pub(crate) fn new(api_version: &str, kind: &str) -> Self {
        let kinds = kinds();
        let of = kinds.type_of(&GroupVersionKind::new(api_version, kind)).unwrap();
        Self {
            schema: kinds.schema,
            of,
            live: Value::Null,
            managers: Managers::new(),
            version: api_version.to_owned(),
        }
    }

    pub(crate) fn of(&self) -> Type<'_> {
        Type::new(&self.schema, &self.of)
    }

    /// Server-side apply, forced.
    pub(crate) fn apply(&mut self, manager: &str, config: &Value) -> &mut Self {
        let id = (manager.to_owned(), Operation::Apply, String::new());
        let (live, config) = (Typed::new(&self.live, self.of()), Typed::new(config, self.of()));
        let managers = self.managers.clone();
        let done = rules().apply(&live, &config, &self.version, managers, &id, &Force::Yes).unwrap();
        self.live = done.object.unwrap_or_else(|| self.live.clone());
        self.managers = done.managers;
        self.strip()
    }

    /// Any other write, of the whole object.
    pub(crate) fn update(
        &mut self,
        manager: &str,
        subresource: &str,
        change: impl FnOnce(&mut Value),
    ) -> &mut Self {
        let id = (manager.to_owned(), Operation::Update, subresource.to_owned());
        let mut new = self.live.clone();
        change(&mut new);
        let (live, object) = (Typed::new(&self.live, self.of()), Typed::new(&new, self.of()));
        self.managers = rules().update(&live, &object, &self.version, self.managers.clone(), &id).unwrap();
        self.live = new;
        self.strip()
    }

    /// What the API server does without anybody owning it: defaults, allocation.
    pub(crate) fn server(&mut self, change: impl FnOnce(&mut Value)) -> &mut Self {
        change(&mut self.live);
        self
    }

    fn strip(&mut self) -> &mut Self {
        let never = r#"{"f:apiVersion":{},"f:kind":{},"f:metadata":{"f:name":{},"f:namespace":{}}}"#;
        let never = FieldSet::from_fields_v1(never).unwrap();
        self.managers.values_mut().for_each(|claim| claim.fields = claim.fields.difference(&never));
        self.managers.retain(|_, claim| !claim.fields.is_empty());
        self
    }

    pub(crate) fn claims(&self) -> Claims {
        let claim =
            |((manager, operation, subresource), claim): (&Id, &kausality_fields::ownership::Claim)| Claim {
                owner: Owner {
                    manager: manager.clone(),
                    operation: *operation,
                    subresource: subresource.clone(),
                    api_version: claim.api_version.clone(),
                    time: Some("2026-01-01T00:00:00Z".to_owned()),
                },
                fields: Ok(claim.fields.clone()),
            };
        Claims(self.managers.iter().map(claim).collect())
    }

    pub(crate) fn report(&self, manager: &str, declared: &Value, delegations: &[&str]) -> Report {
        self.judge(manager, declared, &self.claims(), delegations).unwrap()
    }

    pub(crate) fn judge(
        &self,
        manager: &str,
        declared: &Value,
        claims: &Claims,
        delegations: &[&str],
    ) -> Result<Report, Fault> {
        let delegations: Vec<Delegation> = delegations.iter().map(|text| text.parse().unwrap()).collect();
        Subject {
            manager,
            declared,
            live: &self.live,
            claims,
            of: Some(self.of()),
            status: Status::Apart,
            delegations: &delegations,
            fights: &Fights::default(),
            redaction: &Redaction::new("salt"),
        }
        .judge()
    }

    pub(crate) fn projection(&self, manager: &str, declared: &Value) -> Projection {
        Subject {
            manager,
            declared,
            live: &self.live,
            claims: &self.claims(),
            of: Some(self.of()),
            status: Status::Apart,
            delegations: &[],
            fights: &Fights::default(),
            redaction: &Redaction::new("salt"),
        }
        .projection()
        .unwrap()
    }
}

fn rules() -> Rules {
    Rules::default()
}

/// One finding a line: verdict, path, declared and live value, owners.
pub(crate) fn shown(report: &Report) -> String {
    let value = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
    let line = |finding: &kausality_fields::verdict::Finding| {
        let owners: Vec<_> = finding.owners.iter().map(|owner| owner.manager.as_str()).collect();
        let (declared, live) = (value(&finding.declared), value(&finding.live));
        format!("{} {} {declared} {live} {}", finding.verdict, finding.path, owners.join("+"))
    };
    report.findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(crate) fn service(ports: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"type": "LoadBalancer", "ports": ports}})
}

pub(crate) fn deployment(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

pub(crate) fn containers(containers: Value) -> Value {
    deployment(json!({"template": {"spec": {"containers": containers}}}))
}

/// The live state of an object that helm has applied.
pub(crate) fn applied(declared: &Value) -> World {
    let mut world = World::new(declared["apiVersion"].as_str().unwrap(), declared["kind"].as_str().unwrap());
    world.apply("helm", declared);
    world
}

pub(crate) fn check(world: &World, declared: &Value, expected: &str) {
    let report = world.report("helm", declared, &[]);
    assert_eq!(shown(&report), expected);
    assert_eq!(report, world.report("helm", declared, &[]));
}

fn reference(name: &str) -> Value {
    json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}], "default": {}})
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn list_by(keys: &[&str], items: Value) -> Value {
    json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys})
}

fn kind_of(group: &str, name: &str, mut properties: Value) -> Value {
    properties["apiVersion"] = json!({"type": "string"});
    properties["kind"] = json!({"type": "string"});
    properties["metadata"] = reference("meta.v1.ObjectMeta");
    let mut schema = object(properties);
    schema["x-kubernetes-group-version-kind"] = json!([{"group": group, "version": "v1", "kind": name}]);
    schema
}

/// Small forms of Kubernetes' own types.
pub(crate) fn kinds() -> Kinds {
    let string = || json!({"type": "string"});
    let number = || json!({"type": "integer"});
    let strings = || json!({"type": "object", "additionalProperties": {"type": "string", "default": ""}});
    let quantities = || json!({"type": "object", "additionalProperties": reference(QUANTITY)});
    openapi::document(&json!({"components": {"schemas": {
        "Deployment": kind_of("apps", "Deployment", json!({
            "spec": reference("DeploymentSpec"), "status": object(json!({"readyReplicas": number()}))})),
        "DeploymentSpec": object(json!({
            "replicas": number(), "paused": {"type": "boolean"},
            "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"matchLabels": strings()}},
            "strategy": object(json!({"type": string(), "rollingUpdate": object(json!({"maxSurge": number()}))})),
            "template": object(json!({"metadata": reference("meta.v1.ObjectMeta"), "spec": reference("PodSpec")}))})),
        "PodSpec": object(json!({
            "containers": list_by(&["name"], reference("Container")),
            "volumes": list_by(&["name"], object(json!({"name": string(), "emptyDir": object(json!({"medium": string()}))}))),
            "tolerations": {"type": "array", "items": object(json!({"key": string()})), "x-kubernetes-list-type": "atomic"}})),
        "Container": object(json!({
            "name": string(), "image": string(), "imagePullPolicy": string(),
            "args": {"type": "array", "items": string(), "x-kubernetes-list-type": "atomic"},
            "env": list_by(&["name"], object(json!({"name": string(), "value": string()}))),
            "volumeMounts": list_by(&["mountPath"], object(json!({"mountPath": string(), "name": string(),
                "readOnly": {"type": "boolean"}}))),
            "resources": object(json!({"limits": quantities(), "requests": quantities()}))})),
        "Service": kind_of("", "Service", json!({"spec": object(json!({
            "type": string(), "clusterIP": string(), "selector": strings(),
            "ports": list_by(&["port", "protocol"], object(json!({
                "name": string(), "port": number(), "protocol": {"type": "string", "default": "TCP"},
                "nodePort": number(),
                "targetPort": {"x-kubernetes-int-or-string": true, "type": "string", "format": "int-or-string"}})))}))})),
        "Secret": kind_of("", "Secret", json!({"data": strings(), "stringData": strings(), "type": string()})),
        "meta.v1.ObjectMeta": object(json!({
            "name": string(), "namespace": string(), "creationTimestamp": {"type": "string", "format": "date-time"},
            "labels": strings(), "annotations": strings(),
            "finalizers": {"type": "array", "items": string(), "x-kubernetes-list-type": "set"}})),
        QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]}}}}))
    .unwrap()
}

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
