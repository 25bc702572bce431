//! What the real kubectl says about bad manifests: the same on the sandbox as on a real API server.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kausality_sandbox::{Sandbox, User};
use kausality_testbed::start_or_skip;
use tokio::task::spawn_blocking;

/// How a manifest is sent.
const COMMANDS: [&str; 9] = [
    "apply -f -",
    "create -f -",
    "replace -f -",
    "apply --server-side -f -",
    "apply --validate=strict -f -",
    "apply --validate=warn -f -",
    "apply --validate=ignore -f -",
    "create --validate=ignore -f -",
    "apply --dry-run=server -f -",
];

const MANIFESTS: [(&str, &str); 20] = [
    ("an unknown kind", "{apiVersion: apps/v1, kind: Deploymint, metadata: {name: a}}"),
    ("an unknown kind of the core", "{apiVersion: v1, kind: ConfigMop, metadata: {name: a}}"),
    ("an unknown group", "{apiVersion: nobody.example.com/v1, kind: Thing, metadata: {name: a}}"),
    ("an unknown version", "{apiVersion: apps/v9, kind: Deployment, metadata: {name: a}}"),
    (
        "an unknown kind in a List",
        "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: No, metadata: {name: a}}]}",
    ),
    ("an unknown field", "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, dato: {a: b}}"),
    (
        "unknown fields further down",
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: c, lables: {}}, spec: {replica: 1, selector: {matchLabels: {a: b}}, \
         template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a, prots: []}]}}}}",
    ),
    (
        "an unknown field in a List",
        "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: d}, dato: {}}]}",
    ),
    (
        "an unknown field of a custom resource",
        "{apiVersion: garden.io/v1, kind: Bed, metadata: {name: e}, spec: {size: 1, colour: red}}",
    ),
    (
        "an unknown field of a custom resource in a List",
        "{apiVersion: v1, kind: List, items: [{apiVersion: garden.io/v1, kind: Bed, metadata: {name: f}, spec: {colour: red}}]}",
    ),
    ("a wrong type", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: g}, spec: {replicas: many}}"),
    (
        "a wrong type in a List",
        "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: h}, data: {a: [1]}}]}",
    ),
    (
        "a wrong type of a custom resource",
        "{apiVersion: garden.io/v1, kind: Bed, metadata: {name: i}, spec: {size: big}}",
    ),
    ("no kind", "{apiVersion: v1, metadata: {name: j}}"),
    ("no version", "{kind: ConfigMap, metadata: {name: j}}"),
    ("no name", "{apiVersion: v1, kind: ConfigMap, metadata: {}}"),
    ("a bad name", "{apiVersion: v1, kind: ConfigMap, metadata: {name: A_B}}"),
    ("no YAML", "a: b: c"),
    ("no object", "[1, 2]"),
    ("nothing", ""),
];

const BEDS: &str = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: beds.garden.io}, spec: {\
    group: garden.io, scope: Namespaced, names: {plural: beds, kind: Bed}, versions: [{name: v1, served: true, storage: true, \
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}]}}";

/// A kubectl for one side.
struct Kubectl {
    binary: PathBuf,
    kubeconfig: PathBuf,
    cache: PathBuf,
}

impl Kubectl {
    fn new(binary: &Path, kubeconfig: PathBuf, cache: PathBuf) -> Self {
        Self { binary: binary.to_owned(), kubeconfig, cache }
    }

    /// What it says, and how it ends.
    async fn say(&self, arguments: &str, input: &str) -> String {
        let mut command = Command::new(&self.binary);
        command.arg("--kubeconfig").arg(&self.kubeconfig).arg("--cache-dir").arg(&self.cache);
        command.args(arguments.split(' ')).env_remove("KUBECONFIG");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let input = input.to_owned();
        let output = spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            // One that has seen enough does not read on.
            let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
            child.wait_with_output().unwrap()
        });
        let output = output.await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = format!("{}{}{:?}", text(&output.stdout), text(&output.stderr), output.status.code());
        without_made_up(&said)
    }
}

/// Without times, numbers of processes and what else is never the same.
fn without_made_up(said: &str) -> String {
    let made_up = [
        (r"W\d{4} [\d:.]+ +\d+ ", "W "),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>"),
        (r#""resourceVersion\\":\\"\d+"#, "<version>"),
    ];
    made_up.iter().fold(said.to_owned(), |said, (pattern, name)| {
        regex::Regex::new(pattern).unwrap().replace_all(&said, *name).into_owned()
    })
}

/// Whether the words are Go's alone: an apply on the server checks types in the order of a map, which is random, and says so
/// in other words than all else.
fn is_go(what: &str, command: &str) -> bool {
    command.contains("--server-side") && (what.contains("wrong type") || what.contains("further down"))
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_complains_as_it_does_about_a_real_api_server() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let served = Sandbox::default().serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, served.kubeconfig(&User::admin("alice"))).unwrap();
    let binary = plane.binaries().kubectl();
    let real = Kubectl::new(&binary, plane.kubeconfig(), folder.path().join("real"));
    let ours = Kubectl::new(&binary, kubeconfig, folder.path().join("ours"));
    for side in [&real, &ours] {
        side.say("create -f -", BEDS).await;
        let waited = side.say("wait crd/beds.garden.io --for=condition=Established --timeout=30s", "").await;
        assert!(waited.ends_with("Some(0)"), "{waited}");
        // Schemas are published a while after kinds are served.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !side.say("get --raw /openapi/v2", "").await.contains("io.garden.v1.Bed") {
            assert!(std::time::Instant::now() < deadline, "the schema is not published");
        }
    }
    let mut different = Vec::new();
    for (what, manifest) in MANIFESTS {
        for command in COMMANDS {
            let (real, ours) = tokio::join!(real.say(command, manifest), ours.say(command, manifest));
            if real != ours && !is_go(what, command) {
                different.push(format!("{what}: kubectl {command}\n  real    {real}\n  sandbox {ours}"));
            }
        }
    }
    let count = MANIFESTS.len() * COMMANDS.len();
    assert!(different.is_empty(), "{} of {count} differ:\n{}", different.len(), different.join("\n"));
}
