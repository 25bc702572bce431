//! A control plane, kubectl, and plans.

use std::{
    io::Write,
    ops::Deref,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use kausality_testbed::{ControlPlane, MASTERS, share_or_skip, start_or_skip};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How many control planes run at once: more would only slow each other down.
static SLOTS: Semaphore = Semaphore::const_new(2);

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A namespace of a control plane.
pub(crate) struct Stage {
    plane: Arc<ControlPlane>,
    namespace: String,
    _slot: Option<SemaphorePermit<'static>>,
}

impl Deref for Stage {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        &self.plane
    }
}

/// A namespace of one's own, on a control plane that others use too; none where there are no binaries for one.
pub(crate) async fn stage() -> Option<Stage> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let plane = share_or_skip().await.unwrap()?;
    // As long as `default`, so that tables are as wide.
    let namespace = format!("test-{:02}", NEXT.fetch_add(1, Ordering::Relaxed));
    let stage = Stage { plane, namespace, _slot: None };
    stage.must(&["create", "namespace", &stage.namespace]);
    let kubeconfig = std::fs::read_to_string(stage.plane.kubeconfig()).unwrap();
    let mut kubeconfig: Value = serde_json::from_str(&kubeconfig).unwrap();
    kubeconfig["contexts"][0]["context"]["namespace"] = Value::from(stage.namespace.as_str());
    std::fs::write(stage.kubeconfig(), kubeconfig.to_string()).unwrap();
    Some(stage)
}

/// A control plane of one's own, for tests that define kinds or give rights.
pub(crate) async fn alone() -> Option<Stage> {
    let slot = SLOTS.acquire().await.unwrap();
    let plane = start_or_skip().await.unwrap()?;
    Some(Stage { plane: Arc::new(plane), namespace: "default".to_owned(), _slot: Some(slot) })
}

/// What a plan printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

impl Stage {
    /// The kubeconfig of the administrator, in this namespace.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        match self.namespace.as_str() {
            "default" => self.plane.kubeconfig(),
            other => self.folder().join(format!("{other}.kubeconfig")),
        }
    }

    /// Plans manifests that come on standard input, as the manager `ci`.
    pub(crate) fn plan(&self, manifests: &str, arguments: &[&str]) -> Output {
        self.plan_as("ci", manifests, arguments)
    }

    pub(crate) fn plan_as(&self, manager: &str, manifests: &str, arguments: &[&str]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["plan", "-f", "-", "--manager", manager, "--kubeconfig"])
            .arg(self.kubeconfig())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(manifests.as_bytes()).unwrap();
        self.finish(child)
    }

    /// Waits for a command, and gives what it printed as if it had been about the namespace `default`.
    pub(crate) fn finish(&self, child: Child) -> Output {
        let output = child.wait_with_output().unwrap();
        let text = |printed| String::from_utf8(printed).unwrap().replace(&self.namespace, "default");
        Output {
            code: output.status.code().unwrap(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// A plan in which nothing is to be done.
    #[track_caller]
    pub(crate) fn plans_nothing(&self, manifests: &str) {
        let output = self.plan(manifests, &[]);
        assert!(output.code == 0 && output.stdout.trim().ends_with(" unchanged"), "{output:#?}");
        assert_eq!(output.stdout.lines().count(), 1, "{output:#?}");
    }

    /// Who owns what of an object.
    pub(crate) fn own(&self, object: &str) -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["own", object, "-o", "json", "--kubeconfig"])
            .arg(self.kubeconfig())
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What kubectl does with manifests on standard input.
    #[track_caller]
    pub(crate) fn kubectl_with(&self, arguments: &[&str], manifests: &str) -> String {
        let mut child = self
            .kubectl("admin", &[MASTERS])
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(manifests.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "kubectl {arguments:?}: {text}");
        text
    }

    #[track_caller]
    pub(crate) fn must(&self, arguments: &[&str]) -> String {
        self.kubectl_with(arguments, "")
    }

    /// Applies manifests for a manager, by force.
    #[track_caller]
    pub(crate) fn apply(&self, manager: &str, manifests: &str) {
        let arguments =
            ["apply", "--server-side", "--force-conflicts", "--field-manager", manager, "-f", "-"];
        self.kubectl_with(&arguments, manifests);
    }
}

/// The one object of a plan.
pub(crate) fn only(document: &Value) -> &Value {
    assert_eq!(document["objects"].as_array().unwrap().len(), 1, "{document:#}");
    &document["objects"][0]
}

/// The field of an object at a path.
#[track_caller]
pub(crate) fn field<'a>(object: &'a Value, path: &str) -> &'a Value {
    let fields = object["fields"].as_array().unwrap();
    fields.iter().find(|field| field["path"] == path).unwrap_or_else(|| panic!("no {path} in {object:#}"))
}

/// The names of owners.
pub(crate) fn names(owners: &Value) -> Vec<&str> {
    owners.as_array().unwrap().iter().map(|owner| owner["manager"].as_str().unwrap()).collect()
}

pub(crate) const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app.kubernetes.io/name: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: nginx:1
        args: [a, b]
        resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: 0.5}}
        ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]
        volumeMounts: [{name: tmp, mountPath: /tmp}, {name: tmp, mountPath: /var/tmp}]
      volumes: [{name: tmp, emptyDir: {sizeLimit: 1000Mi}}]
";
