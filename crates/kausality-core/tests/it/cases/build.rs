//! The review and the facts of a case.

use std::sync::Arc;

use jiff::Timestamp;
use kausality_api::{
    approval::{Approval, ApprovalMode},
    exception::ApprovalPolicy,
    identity::UserHash,
    policy::{InputOperation, Kausality},
    trace::Trace,
};
use kausality_core::{
    Exception, Facts, InputChange, Namespace, Parent, Questions, Settings, Summary,
    authority::{Authority, Authorization},
    exceptions::{self, Compiled, Exceptions},
    inputs::Hint,
    policy::Policies,
    review::Object,
    status::Rules,
    summary::{self, ObjectId},
};
use serde_json::{Value, json};

use crate::cases::{
    case::{self, Case, Known, Missing, Patch},
    object::{Bases, Meaning, changed, unborn},
};

/// A case, ready to be decided.
pub(crate) struct Built {
    pub object: Option<Value>,
    pub old_object: Option<Value>,
    pub meaning: Meaning,
    request: Value,
    settings: Settings,
    namespace: Option<Namespace>,
    parent: Option<(Summary, String)>,
    scaled: Option<Result<Summary, String>>,
    input: Option<InputChange>,
    hints: Vec<Hint>,
}

impl Built {
    pub(crate) fn new(case: &Case, bases: &Bases) -> Self {
        let request = &case.request;
        let (old_object, object) = objects(request, bases);
        let meaning = meaning(case, bases, old_object.as_ref(), object.as_ref());
        let settings = settings(&case.facts);
        let parent = match &case.facts.parent {
            Known::Found(patch) => {
                let base = patch.base.as_deref().unwrap_or("cluster");
                let object = bases.object(base, patch, &meaning);
                let whole = (!case.facts.parent_cached).then(|| Arc::new(object.clone()));
                let resource = bases.get(base).resource.clone();
                let mut summary = summary(&object, |group| settings.policies.status_rules(group, &resource));
                summary.whole = whole;
                Some((summary, resource))
            }
            Known::Word(_) | Known::Unreadable(_) => None,
        };
        let scaled = case.facts.scaled.as_ref().map(|scaled| match scaled {
            Known::Found(patch) => {
                let object = scaled_object(patch, bases);
                let mut summary = summary(&object, |_| Rules::default());
                summary.whole = (!case.facts.parent_cached).then(|| Arc::new(object));
                Ok(summary)
            }
            Known::Unreadable(unreadable) => Err(unreadable.unreadable.clone()),
            Known::Word(_) => panic!("a scaled object is there or unreadable"),
        });
        Self {
            request: review(request, bases, old_object.as_ref(), object.as_ref()),
            settings,
            namespace: case.facts.namespace.as_ref().map(|namespace| Namespace {
                labels: namespace.labels.clone(),
                mode: namespace.mode.clone(),
            }),
            input: case.facts.input.as_ref().map(|time| input(time.parse().unwrap())),
            hints: case.facts.hint.as_ref().map(|time| hint(time.parse().unwrap())).into_iter().collect(),
            object,
            old_object,
            meaning,
            parent,
            scaled,
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The review, with the object as other webhooks may have left it.
    pub(crate) fn review(&self, object: Option<&Value>, dry_run: bool) -> String {
        let mut review = self.request.clone();
        if let Some(object) = object {
            review["request"]["object"] = object.clone();
        }
        review["request"]["dryRun"] = json!(dry_run);
        review.to_string()
    }

    /// What a shell knows that asks the questions and no others.
    pub(crate) fn facts<'a>(&'a self, case: &Case, asked: &Questions) -> Facts<'a> {
        let mut facts = Facts::new(case.facts.now.parse().unwrap(), &self.settings);
        facts.timed = !case.facts.untimed;
        facts.below_parent.last = case.facts.last_change.as_ref().map(|time| time.parse().unwrap());
        for user in &case.facts.acts_below {
            facts.below.note(UserHash::of(user, ""), facts.now);
        }
        let last = case.facts.last_change_below.as_ref().map(|time| time.parse().unwrap());
        facts.below.last = facts.below.last.max(last);
        facts.input = self.input.as_ref();
        facts.hints = &self.hints;
        let asks_parent =
            asked.parent.is_some() || matches!(&self.scaled, Some(Ok(scaled)) if scaled.owner.is_some());
        if asks_parent {
            facts.parent = match (&case.facts.parent, &self.parent) {
                (_, Some((summary, resource))) => Parent::Found { summary, resource },
                (Known::Word(Missing::Gone), _) => Parent::Gone,
                (Known::Unreadable(unreadable), _) => Parent::Unreadable(unreadable.unreadable.clone()),
                (_, None) => Parent::None,
            };
        }
        if asked.scaled.is_some() {
            facts.scaled = self.scaled.as_ref().map(|scaled| scaled.as_ref().map_err(Clone::clone));
        }
        if asked.namespace.is_some() {
            facts.namespace = self.namespace.as_ref();
        }
        facts.authority = match case.facts.authority.filter(|_| asked.authority) {
            None => Authority::Unasked,
            Some(case::Authority::Granted) => Authority::Granted,
            Some(case::Authority::Refused) => Authority::Refused,
            Some(case::Authority::Unknown) => Authority::Unknown("no answer".to_owned()),
        };
        facts.exception = case.facts.exception.as_ref().map(|exception| match exception {
            case::Exception::Upgrade(name) => Exception::Upgrade(name.clone()),
            case::Exception::Used(by) => Exception::Used(Box::new(Approval {
                api_version: "*".to_owned(),
                kind: "*".to_owned(),
                namespace: None,
                name: "*".to_owned(),
                generation: None,
                mode: ApprovalMode::Once,
                diff: None,
                fields: Vec::new(),
                expires: None,
                by: Some(by.clone()),
                reason: None,
            })),
        });
        facts
    }
}

/// `oldObject` and `object`, as far as the operation has them.
fn objects(request: &case::Request, bases: &Bases) -> (Option<Value>, Option<Value>) {
    let meaning = Meaning::default();
    let stored = bases.object(&request.base, &request.old_object, &meaning);
    match request.operation.as_str() {
        "CREATE" => {
            let object = unborn(bases.object(&request.base, &Patch::default(), &meaning));
            (None, Some(changed(&object, &request.object, &meaning)))
        }
        "DELETE" => (Some(stored), None),
        "CONNECT" => (None, Some(stored)),
        _ => {
            let object = changed(&stored, &request.object, &meaning);
            (Some(stored), Some(object))
        }
    }
}

fn meaning(case: &Case, bases: &Bases, old: Option<&Value>, new: Option<&Value>) -> Meaning {
    let child = match &case.facts.scaled {
        Some(Known::Found(patch)) => scaled_object(patch, bases),
        _ => old.or(new).unwrap().clone(),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &child["metadata"];
    let name = if metadata["name"].is_null() { &metadata["generateName"] } else { &metadata["name"] };
    let diff = kausality_fields::intent(old, new, &kausality_fields::Redaction::new(SALT)).hash();
    Meaning { child: Some((text(&child["apiVersion"]), text(&child["kind"]), text(name))), diff: Some(diff) }
}

const SALT: &[u8] = b"salt";

fn scaled_object(patch: &Patch, bases: &Bases) -> Value {
    bases.object(patch.base.as_deref().unwrap_or("replicaset"), patch, &Meaning::default())
}

fn summary(object: &Value, rules: impl Fn(&str) -> Rules) -> Summary {
    let text = object.to_string();
    let mut object = Object::parse(&text).unwrap();
    let rules = rules(summary::group(&object.api_version));
    object.read_by(rules);
    Summary::of(&object)
}

/// A change of a ConfigMap by carol.
fn input(at: Timestamp) -> InputChange {
    let object = ObjectId {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: "infra".to_owned(),
        name: "input".to_owned(),
    };
    let trace =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "input", "user": "carol", "timestamp": at}]);
    InputChange { object, at, trace: Trace::decode(&trace.to_string()).ok(), ongoing: false }
}

fn hint(at: Timestamp) -> Hint {
    let InputChange { object, at, .. } = input(at);
    Hint { object, operation: InputOperation::Update, user: "carol".to_owned(), at }
}

fn settings(facts: &case::Facts) -> Settings {
    let policies = facts.policies.iter().map(|policy| {
        let whole = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
            "metadata": {"name": policy.name}, "spec": policy.spec});
        serde_json::from_value::<Kausality>(whole)
            .unwrap_or_else(|error| panic!("policy {}: {error}", policy.name))
    });
    Settings {
        own_users: facts.own_users.iter().cloned().collect(),
        default_mode: facts.default_mode,
        policies: Policies::new(policies.collect()),
        exceptions: Arc::new(Exceptions::new(&compiled(&facts.approval_policies))),
        salt: SALT.to_vec(),
        authorization: facts.authority.map_or(Authorization::None, |_| Authorization::Rbac),
        ..Settings::default()
    }
}

fn compiled(policies: &[case::ApprovalPolicy]) -> Vec<Compiled> {
    let everything = json!([{"apiVersion": "*", "kind": "*", "namespace": "*", "subjects": [{"kind": "User", "name": "*"}]}]);
    let compile = |policy: &case::ApprovalPolicy| {
        let case::ApprovalPolicy { name, namespace, rules } = policy;
        let kind = if namespace.is_empty() { "ClusterApprovalPolicy" } else { "ApprovalPolicy" };
        let policy: ApprovalPolicy = serde_json::from_value(json!({
            "apiVersion": "kausality.io/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"rules": rules.as_ref().unwrap_or(&everything)},
        }))
        .unwrap_or_else(|error| panic!("policy {name}: {error}"));
        exceptions::compile(&policy).unwrap_or_else(|faults| panic!("policy {name}: {faults:?}"))
    };
    policies.iter().map(compile).collect()
}

fn review(request: &case::Request, bases: &Bases, old: Option<&Value>, new: Option<&Value>) -> Value {
    let shown = new.or(old).unwrap();
    let base = bases.get(&request.base);
    let api_version = shown["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource_group = base.group.as_deref().unwrap_or(group);
    let mut review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "request-1",
            "kind": {"group": group, "version": version, "kind": shown["kind"]},
            "resource": {"group": resource_group, "version": "v1", "resource": base.resource},
            "subResource": request.sub_resource,
            "requestSubResource": request.request_sub_resource.as_ref().unwrap_or(&request.sub_resource),
            "name": shown["metadata"]["name"],
            "namespace": shown["metadata"]["namespace"],
            "operation": request.operation,
            "userInfo": {"username": request.user, "uid": request.user_uid, "groups": request.groups},
            "object": new,
            "oldObject": old,
        }
    });
    if let Some(manager) = &request.field_manager {
        review["request"]["options"] = json!({"fieldManager": manager});
    }
    review
}
