use super::*;

const DONE: &str = "done";

/// Reads the status of an object of this kind, with these specs and statuses in JSON.
#[track_caller]
fn check(kind: &str, spec: &str, status: &str, expected: &str) {
    let text = object(kind, spec, status);
    let object = Object::parse(&text).unwrap();
    let actual = match object.reading().standing {
        Standing::Done => DONE.to_owned(),
        Standing::Busy(why) => why.to_owned(),
        Standing::Never(why) => format!("never: {why}"),
        Standing::Silent => "silent".to_owned(),
        Standing::Unclear => "unclear".to_owned(),
    };
    assert_eq!(actual, expected, "{text}");
}

fn object(kind: &str, spec: &str, status: &str) -> String {
    let (api_version, kind) = kind.rsplit_once('/').unwrap();
    let status = if status.is_empty() { String::new() } else { format!(r#","status":{status}"#) };
    format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","spec":{spec}{status}}}"#)
}

#[test]
fn without_a_status_no_built_in_kind_is_done() {
    for kind in [
        "apps/v1/Deployment",
        "apps/v1/ReplicaSet",
        "apps/v1/StatefulSet",
        "apps/v1/DaemonSet",
        "batch/v1/Job",
        "v1/Pod",
        "v1/Service",
        "v1/PersistentVolumeClaim",
        "v1/ReplicationController",
        "apiextensions.k8s.io/v1/CustomResourceDefinition",
    ] {
        check(kind, "{}", "", "there is no status");
    }
}

#[test]
fn a_kind_counts_only_in_its_own_group() {
    check("example.com/v1/Deployment", r#"{"replicas":3}"#, "{}", "silent");
    check("example.com/v1/CronJob", "{}", "{}", "silent");
    check("apps/v1beta2/Deployment", r#"{"replicas":3}"#, "{}", "not all replicas are updated");
}

const ROLLED_OUT: &str = r#"[{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]"#;

#[track_caller]
fn deployment(spec: &str, counters: [i64; 3], conditions: &str, expected: &str) {
    let [updated, all, available] = counters;
    let status = format!(
        r#"{{"updatedReplicas":{updated},"replicas":{all},"availableReplicas":{available},"conditions":{conditions}}}"#
    );
    check("apps/v1/Deployment", spec, &status, expected);
}

#[test]
fn a_deployment_is_done_when_all_replicas_are_new_and_available() {
    let two = r#"{"replicas":2}"#;
    deployment(two, [2, 2, 2], ROLLED_OUT, DONE);
    deployment(two, [1, 2, 2], ROLLED_OUT, "not all replicas are updated");
    deployment(two, [3, 3, 3], ROLLED_OUT, "not all replicas are updated");
    deployment(two, [2, 3, 3], ROLLED_OUT, "old replicas are still there");
    deployment(two, [2, 2, 1], ROLLED_OUT, "not all replicas are available");
    deployment(r#"{"replicas":0}"#, [0, 0, 0], ROLLED_OUT, DONE);
    // One replica is wanted where nothing says how many.
    deployment("{}", [1, 1, 1], ROLLED_OUT, DONE);
    deployment("{}", [0, 0, 0], ROLLED_OUT, "not all replicas are updated");
}

#[test]
fn a_deployment_says_when_it_has_arrived() {
    let missing = "Progressing does not say NewReplicaSetAvailable";
    let two = r#"{"replicas":2}"#;
    let progressing = |status: &str, reason: &str| {
        format!(r#"[{{"type":"Progressing","status":"{status}","reason":"{reason}"}}]"#)
    };
    deployment(two, [2, 2, 2], &progressing("True", "ReplicaSetUpdated"), missing);
    deployment(two, [2, 2, 2], &progressing("False", "ProgressDeadlineExceeded"), missing);
    deployment(two, [2, 2, 2], &progressing("Unknown", "NewReplicaSetAvailable"), missing);
    deployment(two, [2, 2, 2], "[]", missing);
}

#[test]
fn a_deployment_need_not_say_it_when_paused_or_without_a_deadline() {
    let paused = r#"{"replicas":2,"paused":true}"#;
    let unknown = r#"[{"type":"Progressing","status":"Unknown","reason":"DeploymentPaused"}]"#;
    deployment(paused, [2, 2, 2], unknown, DONE);
    deployment(paused, [1, 2, 2], unknown, "not all replicas are updated");
    let no_deadline = r#"{"replicas":2,"progressDeadlineSeconds":2147483647}"#;
    deployment(no_deadline, [2, 2, 2], "[]", DONE);
    let deadline = r#"{"replicas":2,"progressDeadlineSeconds":600}"#;
    deployment(deadline, [2, 2, 2], "[]", "Progressing does not say NewReplicaSetAvailable");
}

#[test]
fn a_deployment_that_cannot_make_replicas_is_not_done() {
    let failing = r#"[{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"},
        {"type":"ReplicaFailure","status":"True"}]"#;
    deployment(r#"{"replicas":2}"#, [2, 2, 2], failing, "condition ReplicaFailure is True");
}

#[test]
fn a_replica_set_is_done_when_all_replicas_are_available() {
    for kind in ["apps/v1/ReplicaSet", "v1/ReplicationController"] {
        let check = |all: i64, labeled: i64, available: i64, conditions: &str, expected: &str| {
            let status = format!(
                r#"{{"replicas":{all},"fullyLabeledReplicas":{labeled},"availableReplicas":{available},"conditions":{conditions}}}"#
            );
            check(kind, r#"{"replicas":2}"#, &status, expected);
        };
        check(2, 2, 2, "[]", DONE);
        check(3, 2, 2, "[]", "there are more or fewer replicas than wanted");
        check(1, 1, 1, "[]", "there are more or fewer replicas than wanted");
        check(2, 1, 2, "[]", "not all replicas have the template's labels");
        check(2, 2, 1, "[]", "not all replicas are available");
        check(2, 2, 2, r#"[{"type":"ReplicaFailure","status":"True"}]"#, "condition ReplicaFailure is True");
        check(2, 2, 2, r#"[{"type":"ReplicaFailure","status":"False"}]"#, DONE);
    }
    // Counters that are zero are left out.
    check("apps/v1/ReplicaSet", r#"{"replicas":0}"#, "{}", DONE);
}

#[track_caller]
fn stateful_set(strategy: &str, status: &str, expected: &str) {
    check(
        "apps/v1/StatefulSet",
        &format!(r#"{{"replicas":3,"updateStrategy":{strategy}}}"#),
        status,
        expected,
    );
}

#[test]
fn a_stateful_set_is_done_when_the_update_revision_is_current() {
    let rolling = r#"{"type":"RollingUpdate"}"#;
    let status = |all: i64, ready: i64, current: &str| {
        format!(
            r#"{{"replicas":{all},"readyReplicas":{ready},"updatedReplicas":1,"currentRevision":"{current}","updateRevision":"b"}}"#
        )
    };
    stateful_set(rolling, &status(3, 3, "b"), DONE);
    stateful_set(rolling, &status(3, 3, "a"), "the update revision is not current yet");
    stateful_set(rolling, &status(4, 3, "b"), "there are more or fewer replicas than wanted");
    stateful_set(rolling, &status(3, 2, "b"), "not all replicas are ready");
    stateful_set(r#"{"type":"OnDelete"}"#, &status(3, 3, "a"), DONE);
    stateful_set(r#"{"type":"OnDelete"}"#, &status(3, 2, "a"), "not all replicas are ready");
}

#[test]
fn a_stateful_set_with_a_partition_is_done_above_it() {
    let strategy =
        |partition: i64| format!(r#"{{"type":"RollingUpdate","rollingUpdate":{{"partition":{partition}}}}}"#);
    let status = |updated: i64| {
        format!(
            r#"{{"replicas":3,"readyReplicas":3,"updatedReplicas":{updated},"currentRevision":"a","updateRevision":"b"}}"#
        )
    };
    let missing = "not all replicas above the partition are updated";
    stateful_set(&strategy(2), &status(1), DONE);
    stateful_set(&strategy(2), &status(0), missing);
    stateful_set(&strategy(1), &status(1), missing);
    stateful_set(&strategy(3), &status(0), DONE);
    stateful_set(&strategy(9), &status(0), DONE);
    stateful_set(&strategy(i64::MAX), &status(0), DONE);
    stateful_set(&strategy(0), &status(3), "the update revision is not current yet");
    stateful_set(&strategy(-1), &status(3), "the update revision is not current yet");
}

#[test]
fn a_daemon_set_is_done_on_just_the_nodes_where_it_is_wanted() {
    let check = |spec: &str, [current, misplaced, updated, available]: [i64; 4], expected: &str| {
        let status = format!(
            r#"{{"desiredNumberScheduled":3,"currentNumberScheduled":{current},"numberMisscheduled":{misplaced},"updatedNumberScheduled":{updated},"numberAvailable":{available}}}"#
        );
        check("apps/v1/DaemonSet", spec, &status, expected);
    };
    let rolling = r#"{"updateStrategy":{"type":"RollingUpdate"}}"#;
    check(rolling, [3, 0, 3, 3], DONE);
    check(rolling, [2, 0, 3, 3], "not scheduled on just the nodes where it is wanted");
    check(rolling, [3, 1, 3, 3], "not scheduled on just the nodes where it is wanted");
    check(rolling, [3, 0, 2, 3], "not all Pods are updated");
    check(rolling, [3, 0, 3, 2], "not all Pods are available");
    let on_delete = r#"{"updateStrategy":{"type":"OnDelete"}}"#;
    check(on_delete, [3, 0, 0, 3], DONE);
    check(on_delete, [3, 0, 0, 2], "not all Pods are available");
}

#[test]
fn a_job_is_done_when_it_is_over() {
    let condition = |name: &str, status: &str| {
        format!(r#"{{"active":1,"conditions":[{{"type":"{name}","status":"{status}"}}]}}"#)
    };
    check("batch/v1/Job", "{}", &condition("Complete", "True"), DONE);
    check("batch/v1/Job", "{}", &condition("Failed", "True"), DONE);
    for other in [condition("Complete", "False"), condition("Suspended", "True"), "{}".to_owned()] {
        check("batch/v1/Job", "{}", &other, "neither Complete nor Failed");
    }
}

#[test]
fn a_cron_job_never_is() {
    for status in ["", "{}", r#"{"conditions":[{"type":"Ready","status":"True"}]}"#] {
        check("batch/v1/CronJob", "{}", status, "never: a CronJob acts on a schedule");
    }
}

#[test]
fn a_pod_is_done_when_ready_or_over() {
    let ready = r#"{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}"#;
    check("v1/Pod", "{}", ready, DONE);
    check("v1/Pod", "{}", r#"{"phase":"Succeeded"}"#, DONE);
    check("v1/Pod", "{}", r#"{"phase":"Failed"}"#, DONE);
    for phase in ["Running", "Pending", "Unknown"] {
        check("v1/Pod", "{}", &format!(r#"{{"phase":"{phase}"}}"#), "neither Ready nor over");
    }
}

#[test]
fn a_service_waits_for_its_load_balancer_only() {
    check("v1/Service", r#"{"type":"ClusterIP"}"#, r#"{"loadBalancer":{}}"#, DONE);
    check("v1/Service", "{}", "{}", DONE);
    let balanced = r#"{"type":"LoadBalancer"}"#;
    let waiting = "the load balancer has no address yet";
    check("v1/Service", balanced, r#"{"loadBalancer":{}}"#, waiting);
    check("v1/Service", balanced, r#"{"loadBalancer":{"ingress":[]}}"#, waiting);
    check("v1/Service", balanced, "{}", waiting);
    check("v1/Service", balanced, r#"{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}"#, DONE);
}

#[test]
fn a_claim_is_done_when_bound() {
    check("v1/PersistentVolumeClaim", "{}", r#"{"phase":"Bound"}"#, DONE);
    for phase in ["Pending", "Lost", ""] {
        check("v1/PersistentVolumeClaim", "{}", &format!(r#"{{"phase":"{phase}"}}"#), "not Bound");
    }
}

#[test]
fn a_definition_is_done_when_served() {
    let check = |established: &str, accepted: &str, expected: &str| {
        let status = format!(
            r#"{{"conditions":[{{"type":"Established","status":"{established}"}},{{"type":"NamesAccepted","status":"{accepted}"}}]}}"#
        );
        check("apiextensions.k8s.io/v1/CustomResourceDefinition", "{}", &status, expected);
    };
    let missing = "not Established with NamesAccepted";
    check("True", "True", DONE);
    check("False", "True", missing);
    check("True", "False", missing);
}

/// Reads a custom resource with these conditions: `Ready=True`, or `Progressing=True:Reason`.
#[track_caller]
fn custom(conditions: &[&str], expected: &str) {
    let conditions: Vec<_> = (conditions.iter())
        .map(|condition| {
            let (name, status) = condition.split_once('=').unwrap();
            let (status, reason) = status.split_once(':').unwrap_or((status, ""));
            serde_json::json!({"type": name, "status": status, "reason": reason})
        })
        .collect();
    let status = serde_json::json!({ "conditions": conditions }).to_string();
    check("example.com/v1/Thing", "{}", &status, expected);
}

#[test]
fn other_kinds_are_read_by_the_conditions_that_kinds_share() {
    custom(&[], "silent");
    custom(&["Ready=True"], DONE);
    custom(&["Ready=False"], "condition Ready is not True");
    custom(&["Ready=Unknown"], "condition Ready is not True");
    custom(&["Available=True"], DONE);
    custom(&["Available=False"], "condition Available is not True");
    custom(&["Synced=True", "Ready=True"], DONE);
    custom(&["Synced=False", "Ready=True"], "condition Synced is not True");
    custom(&["Reconciling=True", "Ready=True"], "condition Reconciling is not False");
    custom(&["Reconciling=False"], DONE);
    custom(&["ScalingUp=False", "ScalingDown=False", "Paused=False"], DONE);
    custom(&["ScalingUp=False", "ScalingDown=True"], "condition ScalingDown is not False");
    custom(&["Available=True", "TopologyReconciled=False"], "condition TopologyReconciled is not True");
    custom(&["Paused=False", "Deleting=False"], "unclear");
    custom(&["Reconciling=Unknown"], "condition Reconciling is not False");
    custom(&["Progressing=True", "Available=True"], "condition Progressing is not False");
    custom(&["Progressing=Unknown:RolloutPaused", "Available=True"], "condition Progressing is not False");
    custom(&["Progressing=False", "Available=True"], DONE);
    custom(&["Progressing=True:NewReplicaSetAvailable"], DONE);
    custom(&["Stalled=True"], "condition Stalled is not False");
    custom(&["Stalled=False", "Ready=True"], DONE);
    // None that is known to say that it is done.
    custom(&["Degraded=True", "Upgradeable=False"], "unclear");
    custom(&["ready=false"], "unclear");
    custom(&["Paused=False"], "unclear");
    custom(&["Progressing=False"], "unclear");
    custom(&["Issuing=True"], "condition Issuing is not False");
    custom(&["Ready=True", "Issuing=True"], "condition Issuing is not False");
    custom(&["Healthy=True", "Available=True", "Completed=False"], "condition Completed is not True");
    custom(&["Available=True", "RollingOut=False", "ScalingDown=True"], "condition ScalingDown is not False");
}

#[test]
fn a_phase_counts_where_there_are_no_conditions() {
    for (status, expected) in [
        (r#"{"phase":"Running"}"#, DONE),
        (r#"{"phase":"running"}"#, DONE),
        (r#"{"state":"Ready"}"#, DONE),
        (r#"{"phase":"Pending"}"#, "its phase is not one of those that mean done"),
        (r#"{"phase":""}"#, "silent"),
        (
            r#"{"phase":"Running","conditions":[{"type":"Ready","status":"False"}]}"#,
            "condition Ready is not True",
        ),
        (r#"{"phase":"Running","conditions":[{"type":"Paused","status":"False"}]}"#, "unclear"),
    ] {
        check("example.com/v1/Thing", "{}", status, expected);
    }
}

#[test]
fn a_certificate_is_due_when_it_says_so() {
    let due = |kind: &str| {
        let text = object(kind, "{}", r#"{"renewalTime":"2026-11-16T17:43:04Z"}"#);
        let object = Object::parse(&text).unwrap();
        object.reading().due.map(|due| due.to_string())
    };
    assert_eq!(due("cert-manager.io/v1/Certificate").as_deref(), Some("2026-11-16T17:43:04Z"));
    assert_eq!(due("example.com/v1/Certificate"), None);
}

#[test]
fn an_external_secret_is_due_when_its_store_is_read_again() {
    let due = |interval: &str| {
        let (interval, policy) = interval.split_once(' ').unwrap_or((interval, "Periodic"));
        let spec = format!(r#"{{"refreshInterval":"{interval}","refreshPolicy":"{policy}"}}"#);
        let status = r#"{"refreshTime":"2026-11-16T17:00:00Z"}"#;
        let text = object("external-secrets.io/v1/ExternalSecret", &spec, status);
        Object::parse(&text).unwrap().reading().due.map(|due| due.to_string())
    };
    assert_eq!(due("1h0m0s").as_deref(), Some("2026-11-16T18:00:00Z"));
    assert_eq!(due("30s").as_deref(), Some("2026-11-16T17:00:30Z"));
    for never in ["0", "0s", "", "often", "1h CreatedOnce"] {
        assert_eq!(due(never), None, "{never}");
    }
}

#[test]
fn ready_is_a_matter_of_two_conditions() {
    for (condition, expected) in [
        (r#"{"type":"Ready","status":"True"}"#, true),
        (r#"{"type":"Initialized","status":"True"}"#, true),
        (r#"{"type":"Ready","status":"False"}"#, false),
        (r#"{"type":"Initialized","status":"Unknown"}"#, false),
        (r#"{"type":"Available","status":"True"}"#, false),
        (r#"{"type":"Ready","status":true}"#, false),
    ] {
        let text = object("example.com/v1/Thing", "{}", &format!(r#"{{"conditions":[{condition}]}}"#));
        let object = Object::parse(&text).unwrap();
        assert_eq!(object.reading().ready, expected, "{condition}");
    }
}

#[track_caller]
fn observed(status: &str, expected: Option<i64>) {
    let text = object("example.com/v1/Thing", "{}", status);
    let object = Object::parse(&text).unwrap();
    assert_eq!(object.reading().observed_generation, expected, "{status}");
}

#[test]
fn observed_generation_is_native_else_on_the_conditions() {
    observed("", None);
    observed("{}", None);
    observed(r#"{"observedGeneration":4}"#, Some(4));
    observed(r#"{"observedGeneration":0}"#, Some(0));
    observed(r#"{"observedGeneration":null}"#, None);
    observed(r#"{"observedGeneration":4,"conditions":[{"type":"Ready","observedGeneration":9}]}"#, Some(4));
    observed(r#"{"conditions":[{"type":"Ready","observedGeneration":3}]}"#, Some(3));
    // All of the conditions that matter must have caught up.
    observed(
        r#"{"conditions":[{"type":"Ready","observedGeneration":3},{"type":"Synced","observedGeneration":2}]}"#,
        Some(2),
    );
    // One that does not matter may be about any generation.
    observed(
        r#"{"conditions":[{"type":"Ready","observedGeneration":3},{"type":"Responsive","observedGeneration":1}]}"#,
        Some(3),
    );
    // Where none matters, the latest is what the controller has seen.
    observed(
        r#"{"conditions":[{"type":"A","observedGeneration":1},{"type":"B","observedGeneration":2}]}"#,
        Some(2),
    );
}

#[test]
fn names_may_mean_something_else_in_custom_resources() {
    for status in [
        r#""up""#,
        "7",
        "null",
        "[]",
        r#"{"conditions":"none"}"#,
        r#"{"conditions":{"Ready":"False"}}"#,
        r#"{"observedGeneration":1.5}"#,
        r#"{"observedGeneration":99999999999999999999}"#,
    ] {
        check("example.com/v1/Thing", "{}", status, "silent");
        observed(status, None);
    }
    for status in [r#"{"conditions":[1,2]}"#, r#"{"conditions":[{"type":["Ready"],"status":"False"}]}"#] {
        check("example.com/v1/Thing", "{}", status, "unclear");
    }
    // A number as text is one (Argo Rollouts).
    observed(r#"{"conditions":null,"observedGeneration":"5"}"#, Some(5));
    // A truth of another type is no truth.
    check(
        "example.com/v1/Thing",
        "{}",
        r#"{"conditions":[{"type":"Ready","status":true}]}"#,
        "condition Ready is not True",
    );
    // Counters of another type count as zero.
    check(
        "apps/v1/ReplicaSet",
        r#"{"replicas":2}"#,
        r#"{"replicas":"2"}"#,
        "there are more or fewer replicas than wanted",
    );
    check(
        "apps/v1/ReplicaSet",
        r#""none""#,
        r#"{"replicas":1,"fullyLabeledReplicas":1,"availableReplicas":1}"#,
        DONE,
    );
}

#[test]
fn one_bad_condition_does_not_hide_the_others() {
    let status = r#"{"conditions":[7,{"type":"Ready","status":"False","observedGeneration":4},"x"]}"#;
    check("example.com/v1/Thing", "{}", status, "condition Ready is not True");
    observed(status, Some(4));
}
