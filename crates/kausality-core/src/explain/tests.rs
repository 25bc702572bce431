use super::*;

fn size(steps: &[DriftStep]) -> usize {
    let lines = |step: &DriftStep| step.evidence.iter().map(String::len).sum::<usize>();
    steps.iter().map(|step| step.rule.len() + step.finding.len() + lines(step)).sum()
}

#[test]
fn what_fits_is_recorded_as_it_is() {
    let mut explanation = Explanation::default();
    explanation.saw_by(Rule::Actor, "Controller", vec!["one".to_owned(), "two".to_owned()]);
    explanation.saw(Rule::Mode, "enforce\u{1b}[2J");
    explanation.decided_by(Rule::Mode);
    let step = |rule: &str, finding: &str, evidence: &[&str], decided| DriftStep {
        rule: rule.to_owned(),
        finding: finding.to_owned(),
        evidence: evidence.iter().map(ToString::to_string).collect(),
        decided,
    };
    let expected =
        [step("actor", "Controller", &["one", "two"], false), step("mode", "enforce\\u{1b}[2J", &[], true)];
    assert_eq!(explanation.recorded(), expected);
}

#[test]
fn however_much_was_seen_what_decided_is_recorded() {
    let long = "ü".repeat(5000);
    let mut explanation = Explanation::default();
    for _ in 0..50 {
        explanation.saw_by(Rule::Approval, long.clone(), vec![long.clone(); 50]);
    }
    explanation.saw_by(Rule::Policy, "denied by a rule", vec!["that is why".to_owned(), long.clone()]);
    explanation.decided_by(Rule::Policy);
    explanation.saw_by(Rule::Mode, "enforce", vec![long]);
    let recorded = explanation.recorded();
    assert!(size(&recorded) <= MAX_EXPLANATION, "{}", size(&recorded));
    assert!(recorded.len() <= MAX_STEPS, "{}", recorded.len());
    let decided = recorded.iter().find(|step| step.decided).unwrap();
    assert_eq!(decided.finding, "denied by a rule");
    let evidence = &decided.evidence;
    assert_eq!(evidence.first().unwrap(), "that is why");

    let mut many = Explanation::default();
    (0..50).for_each(|_| many.saw(Rule::Approval, "none"));
    many.saw(Rule::Mode, "log");
    many.decided_by(Rule::Mode);
    let recorded = many.recorded();
    assert_eq!((recorded.len(), recorded.last().unwrap().decided), (MAX_STEPS, true));
}

#[test]
fn findings_come_before_evidence_and_what_is_left_out_shows() {
    let mut explanation = Explanation::default();
    explanation.saw_by(Rule::Approval, "none is valid for it", vec!["x".repeat(MAX_LINE); 20]);
    explanation.saw(Rule::Mode, "enforce");
    let recorded = explanation.recorded();
    let rules: Vec<&str> = recorded.iter().map(|step| step.rule.as_str()).collect();
    assert_eq!(rules, ["approval", "mode"]);
    assert_eq!(recorded[0].evidence.last().unwrap(), LEFT_OUT);
    assert!((5..20).contains(&recorded[0].evidence.len()));
}
