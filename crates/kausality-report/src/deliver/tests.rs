use kausality_api::{drift::Delivery, report::ReportPhase};

use super::*;

#[test]
fn a_record_is_only_written_where_it_belongs() {
    let at = Timestamp::UNIX_EPOCH;
    let told = |detected: bool, resolved: bool| Delivery {
        endpoint: "a".to_owned(),
        detected: detected.then_some(at),
        resolved: resolved.then_some(at),
        error: None,
    };
    let open = |deliveries: &[Delivery]| Standing { resolved: None, deliveries: deliveries.to_vec() };
    let over = |deliveries: &[Delivery]| Standing { resolved: Some(at), deliveries: deliveries.to_vec() };
    let (detected, resolved) = (Record::Told(ReportPhase::Detected), Record::Told(ReportPhase::Resolved));
    for (standing, record, expected) in [
        (open(&[]), &detected, true),
        (over(&[]), &detected, true),
        (open(&[told(true, false)]), &detected, false),
        (over(&[told(true, false)]), &resolved, true),
        // Seen again while its end was being told.
        (open(&[]), &resolved, false),
        (over(&[]), &resolved, false),
        (over(&[]), &Record::Silent, true),
        (open(&[]), &Record::Silent, false),
        (over(&[told(true, false)]), &Record::Silent, false),
        (open(&[]), &Record::Failed(String::new()), true),
        (open(&[told(true, false)]), &Record::Failed(String::new()), false),
    ] {
        assert_eq!(asks_for(&standing, "a", record), expected, "{standing:?} {record:?}");
    }
}

#[test]
fn both_kinds_are_reached() {
    for (namespace, kind, plural) in [("", "ClusterDrift", "clusterdrifts"), ("a", "Drift", "drifts")] {
        let resource = resource(namespace);
        assert_eq!((resource.kind.as_str(), resource.plural.as_str()), (kind, plural));
        assert_eq!((resource.group.as_str(), resource.version.as_str()), ("kausality.io", "v1alpha1"));
    }
}
