//! The same story as on a real control plane: a Deployment of 4, and another image.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    super::{DEPLOYMENTS, REPLICA_SETS, conditions, object},
    World, deployment, image,
};

/// One write as both show it.
#[derive(Clone, Debug)]
struct Seen {
    user: String,
    verb: &'static str,
    plural: String,
    object: Value,
    /// Whether it was not stored, as far as that can be seen.
    stale: bool,
}

/// Who does what to what.
type Kind = (String, &'static str, String);

impl Seen {
    fn kind(&self) -> Kind {
        (self.user.clone(), self.verb, self.plural.clone())
    }

    fn is(&self, verb: &str, plural: &str) -> bool {
        self.verb == verb && self.plural == plural
    }
}

/// The recorded rollout of the Deployment `web`.
fn recorded() -> Vec<Seen> {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/admission-reviews/deployment-rollout.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let reviews = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["request"].clone());
    let web = |it: &Value| {
        let object = if it["object"].is_null() { &it["oldObject"] } else { &it["object"] };
        let name = object["metadata"]["name"].as_str().or(object["metadata"]["generateName"].as_str());
        name.is_some_and(|name| name == "web" || name.starts_with("web-"))
    };
    let seen = |it: Value| {
        let verb = match (it["operation"].as_str().unwrap(), it["subResource"].as_str()) {
            ("CREATE", _) => "CREATE",
            ("DELETE", _) => "DELETE",
            (_, Some("status")) => "STATUS",
            _ => "UPDATE",
        };
        let (new, old) = (&it["object"], &it["oldObject"]);
        let user = it["userInfo"]["username"].as_str().unwrap().rsplit(':').next().unwrap();
        Seen {
            // Whoever recorded played the kubelet as well.
            user: if user == "admin" { "sandbox".to_owned() } else { user.to_owned() },
            verb,
            plural: it["resource"]["resource"].as_str().unwrap().to_owned(),
            stale: verb != "CREATE" && verb != "DELETE" && object::version(new) != object::version(old),
            object: if new.is_null() { old.clone() } else { new.clone() },
        }
    };
    reviews.filter(web).map(seen).collect()
}

fn played(seed: u64) -> Vec<Seen> {
    let mut world = World::new(seed);
    world.lag = false;
    world.create(&DEPLOYMENTS, deployment(4));
    world.settle();
    world.patch(&DEPLOYMENTS.key("default", "web"), image("web:2"));
    world.settle();
    let log = world.api.log.into_iter().filter(|it| !["namespaces", "nodes"].contains(&&*it.resource.plural));
    log.map(|it| Seen {
        user: if it.user == "alice" { "sandbox".to_owned() } else { it.user },
        verb: it.verb,
        plural: it.resource.plural.to_string(),
        object: (*it.after.or(it.before).unwrap_or_default()).clone(),
        stale: it.refusal.is_some(),
    })
    .collect()
}

/// The sizes that were stored for each ReplicaSet, in order: the old one and the new one.
fn sizes(story: &[Seen]) -> [Vec<i64>; 2] {
    let sets = || story.iter().filter(|it| it.plural == "replicasets" && it.verb != "STATUS" && !it.stale);
    let names: Vec<_> = sets().filter(|it| it.verb == "CREATE").map(|it| object::name(&it.object)).collect();
    let of = |name: &str| {
        let mut sizes: Vec<_> = sets()
            .filter(|it| object::name(&it.object) == name)
            .map(|it| object::int(&it.object["spec"]["replicas"]))
            .collect();
        sizes.dedup();
        sizes
    };
    assert_eq!(names.len(), 2);
    [of(names[0]), of(names[1])]
}

/// The reasons of the condition Progressing, each time it changed, during the second rollout.
fn reasons(story: &[Seen]) -> Vec<&str> {
    let start = story.iter().rposition(|it| it.is("CREATE", "replicasets")).unwrap();
    let told = story[start..].iter().filter(|it| it.is("STATUS", "deployments") && !it.stale);
    let mut reasons: Vec<_> =
        told.map(|it| conditions::reason(&it.object["status"], "Progressing")).collect();
    reasons.dedup();
    reasons
}

/// How many changes of ReplicaSets were stored after the Deployment had observed its last generation.
fn after_observed(story: &[Seen]) -> usize {
    let observed =
        |it: &Seen| it.is("STATUS", "deployments") && it.object["status"]["observedGeneration"] == 2;
    let start = story.iter().position(|it| observed(it) && !it.stale).unwrap();
    story[start..].iter().filter(|it| it.is("UPDATE", "replicasets") && !it.stale).count()
}

#[test]
fn the_recording_reads_as_expected() {
    let story = recorded();
    assert_eq!(sizes(&story), [vec![4, 3, 2, 1, 0], vec![1, 2, 3, 4]]);
    assert_eq!(reasons(&story), ["NewReplicaSetCreated", "ReplicaSetUpdated", "NewReplicaSetAvailable"]);
    assert_eq!(after_observed(&story), 5);
}

#[test]
fn the_same_story_has_the_same_kinds_of_writes_in_the_same_order() {
    let real = recorded();
    let kinds = |story: &[Seen]| story.iter().map(Seen::kind).collect::<BTreeSet<_>>();
    for seed in 1..=100 {
        let ours = played(seed);
        // The recorded Pods were on no node, and went at once; ours are ended by their kubelet.
        let mut expected = kinds(&real);
        expected.insert(("sandbox".to_owned(), "DELETE", "pods".to_owned()));
        expected.insert(("kube-scheduler".to_owned(), "BIND", "pods".to_owned()));
        // Where it was recorded, the namespace was older than the recording.
        expected.insert(("service-account-controller".to_owned(), "CREATE", "serviceaccounts".to_owned()));
        assert_eq!(kinds(&ours), expected, "seed {seed}");

        let [old, new] = sizes(&ours);
        assert_eq!((old[0], new[0], *old.last().unwrap(), *new.last().unwrap()), (4, 1, 0, 4), "seed {seed}");
        assert!(old.is_sorted_by(|a, b| a > b) && new.is_sorted(), "seed {seed}: {old:?} {new:?}");
        assert_eq!(reasons(&ours), reasons(&real), "seed {seed}");
        assert!(after_observed(&ours) > 0, "seed {seed}: observed first, done later");

        // A new ReplicaSet is told of in the status right after it was made, and the next status conflicts with that.
        let by_controller: Vec<_> = ours.iter().filter(|it| it.user == "deployment-controller").collect();
        for made in 0..by_controller.len() {
            if by_controller[made].is("CREATE", "replicasets") && !by_controller[made].stale {
                let told = by_controller[made + 1];
                assert!(told.is("STATUS", "deployments"));
                assert_eq!(conditions::reason(&told.object["status"], "Progressing"), "NewReplicaSetCreated");
            }
        }
        assert!(
            ours.iter()
                .filter(|it| it.is("UPDATE", &REPLICA_SETS.plural))
                .all(|it| it.user == "deployment-controller")
        );
    }
}
