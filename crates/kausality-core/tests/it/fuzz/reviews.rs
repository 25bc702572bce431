//! The body of an admission review, through parsing and a decision.

use kausality_api::{mode::Mode, policy::Kausality};
use kausality_core::{
    Decision, Facts, Namespace, Parent, Review, Settings, Summary,
    authority::Authorization,
    decide, decisions,
    exceptions::{self, Exceptions},
    inputs::Changed,
    policy::Policies,
    questions,
    review::Object,
};
use serde_json::json;

use crate::fuzz::corpus;

/// The recorded reviews.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let files = ["custom-resources", "deployment-lifecycle", "deployment-rollout", "drift-after-rollout"];
    let lines = files.iter().flat_map(|file| {
        let text = corpus::file(&format!("fixtures/admission-reviews/{file}.jsonl"));
        text.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
    });
    // Every few of them: neighbours are much alike.
    lines.step_by(7).collect()
}

/// Reads a review and decides it in several worlds.
pub(crate) fn run(input: &[u8]) -> String {
    let review = match Review::parse(input) {
        Ok(review) => review,
        Err(error) => return said(&error.to_string()),
    };
    let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality", "metadata": {"name": "p"},
        "spec": {"resources": [{"apiGroups": ["apps"], "resources": ["*"]}], "mode": "enforce",
            "objectSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}}});
    let policy: Kausality = serde_json::from_value(policy).unwrap();
    let approving = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy",
        "metadata": {"name": "a"}, "spec": {"rules": [{"apiVersion": "*", "kind": "*",
            "subjects": [{"kind": "User", "name": "*"}], "prereqs": {"cel": "object.?metadata.labels.hasValue()"},
            "match": {"cel": "object.metadata.name.size() > 3 || request.name.matches('a+')", "regexp": "(a|b|.)*c"}}]}});
    let approving = exceptions::compile(&serde_json::from_value(approving).unwrap()).unwrap();
    let settings = Settings {
        own_users: ["kausality".to_owned()].into(),
        default_mode: Mode::Log,
        policies: Policies::new(vec![policy]),
        exceptions: Exceptions::new([&approving]).into(),
        salt: vec![1, 2, 3],
        authorization: Authorization::Rbac,
        ..Settings::default()
    };
    let enforcing = Settings { default_mode: Mode::Enforce, ..settings.clone() };
    let asked = questions(&review.request, &settings);
    // What others wrote is what a parent looks like, too.
    let values = review.values();
    let objects = [values.old_object, values.object].map(|value| value.map(|value| value.to_string()));
    let summaries = objects.iter().flatten().filter_map(|text| Object::parse(text).ok());
    let summaries: Vec<Summary> = summaries.map(|object| Summary::of(&object)).collect();
    let namespace = Namespace::default();
    let mut ways = format!("{}{}", asked.parent.is_some(), asked.scaled.is_some());
    for settings in [&settings, &enforcing] {
        let found = summaries.iter().map(|summary| Parent::Found { summary, resource: "deployments" });
        let others = [Parent::None, Parent::Gone, Parent::Unreadable("no".to_owned())];
        for parent in others.into_iter().chain(found) {
            let facts = Facts {
                parent,
                scaled: summaries.first().map(Ok),
                namespace: Some(&namespace),
                ..Facts::new("2026-01-24T10:30:00Z".parse().unwrap(), settings)
            };
            ways.push_str(&way(&decide(&review, &facts)));
        }
        let facts = Facts::new("2026-01-24T10:30:00Z".parse().unwrap(), settings);
        ways.push_str(&way(&decisions(&review, &facts)));
        let seen = Changed::observed(&review.request, settings, facts.now);
        ways.push_str(if seen.is_some() { "seen" } else { "-" });
    }
    ways
}

/// A decision in a few words. Its patch and its effects must have a form that can be sent.
pub(crate) fn way(decision: &Decision) -> String {
    let patch = serde_json::to_string(&decision.patch.operations()).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&patch).is_ok());
    if let Some(trace) = &decision.trace {
        assert!(
            trace.encode().len() <= kausality_api::trace::MAX_BYTES,
            "{} bytes of trace",
            trace.encode().len()
        );
    }
    let cause = decision.cause.map(|cause| cause.as_str()).unwrap_or_default();
    let rules: Vec<&str> = decision
        .explanation
        .steps()
        .iter()
        .filter(|step| step.decided)
        .map(|step| step.rule.as_str())
        .collect();
    format!(
        "|{} {cause} {} {} {rules:?} {} {} {}",
        decision.class,
        decision.verdict.as_str(),
        decision.resolution,
        decision.warnings.len().min(3),
        decision.effects.len(),
        decision.patch.annotations.len()
    )
}

/// A complaint without what it quotes.
pub(crate) fn said(error: &str) -> String {
    let words = error.chars().filter(|character| character.is_ascii_alphabetic() || *character == ' ');
    words.take(60).collect()
}
