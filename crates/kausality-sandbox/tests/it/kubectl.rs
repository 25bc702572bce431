//! The real kubectl against the sandbox.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use kausality_sandbox::{Sandbox, Served, User, VERSION, controllers};
use kausality_testbed::Binaries;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

/// A sandbox, and kubectl for it.
struct Stage {
    kubectl: PathBuf,
    folder: TempDir,
    served: Served,
}

impl Stage {
    /// `None` if there is no kubectl, which is said loudly.
    async fn new() -> Option<Self> {
        Self::of(Sandbox::default()).await
    }

    async fn of(sandbox: Sandbox) -> Option<Self> {
        let found = spawn_blocking(Binaries::find).await.unwrap().unwrap();
        let Some(binaries) = found else {
            assert!(std::env::var_os("REQUIRE_CONTROL_PLANE").is_none(), "there is no kubectl");
            let line = "\n==> SKIPPED: there is no kubectl. `make control-plane` provides it.\n";
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            return None;
        };
        let served = sandbox.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), served.kubeconfig(&User::admin("alice"))).unwrap();
        Some(Self { kubectl: binaries.kubectl(), folder, served })
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(self.folder.path().join("kubeconfig"));
        command.arg("--cache-dir").arg(self.folder.path().join("cache"));
        command.args(arguments.split(' ')).env_remove("KUBECONFIG").stdin(Stdio::piped());
        command
    }

    async fn output(&self, arguments: &str, input: &str) -> Output {
        let mut command = self.command(arguments);
        command.env("KUBE_EDITOR", "sed -i s/replicas:.*/replicas:\\ 7/");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let input = input.to_owned();
        spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            child.wait_with_output().unwrap()
        })
        .await
        .unwrap()
    }

    /// What it prints. It must succeed.
    #[track_caller]
    fn run(&self, arguments: &str) -> impl Future<Output = String> {
        self.feed(arguments, "")
    }

    async fn feed(&self, arguments: &str, input: &str) -> String {
        let output = self.output(arguments, input).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What it complains about. It must fail.
    async fn fail(&self, arguments: &str, input: &str) -> String {
        let output = self.output(arguments, input).await;
        assert!(!output.status.success(), "kubectl {arguments}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    async fn get(&self, what: &str) -> Value {
        serde_json::from_str(&self.run(&format!("get {what} -o json --show-managed-fields")).await).unwrap()
    }
}

fn deployment(image: &str) -> String {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": image}]}}}})
    .to_string()
}

#[tokio::test]
async fn it_looks_around() {
    let Some(stage) = Stage::new().await else { return };
    assert!(stage.run("version").await.contains("Server Version: v1.35"));
    let resources = stage.run("api-resources").await;
    assert!(resources.contains("deployments") && resources.contains("deploy "), "{resources}");
    let who = stage.run("auth whoami").await;
    assert!(who.contains("alice") && who.contains("system:masters"), "{who}");
    assert!(stage.run("auth whoami --as=bob --as-group=dev").await.contains("bob"));
    assert_eq!(stage.run("auth can-i create pods").await.trim(), "yes");
    assert!(stage.run("get namespaces").await.contains("kube-system"));
    assert!(stage.run("explain deployment.spec.replicas").await.contains("replicas <integer>"));
    assert!(stage.fail("get nothings", "").await.contains("doesn't have a resource type"));
    assert!(stage.fail("get pod p", "").await.contains("pods \"p\" not found"));
}

#[tokio::test]
async fn it_applies_on_the_client_and_on_the_server() {
    let Some(stage) = Stage::new().await else { return };
    assert_eq!(stage.feed("apply -f -", &deployment("i:1")).await, "deployment.apps/web created\n");
    assert_eq!(stage.feed("apply -f -", &deployment("i:1")).await, "deployment.apps/web unchanged\n");
    let output = stage.output("diff -f -", &deployment("i:2")).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("+      - image: i:2"));
    let dry = stage.feed("apply --dry-run=server -f -", &deployment("i:2")).await;
    assert_eq!(dry, "deployment.apps/web configured (server dry run)\n");
    stage.feed("apply -f -", &deployment("i:2")).await;
    let web = stage.get("deploy web").await;
    assert_eq!(
        (&web["metadata"]["generation"], &web["spec"]["template"]["spec"]["containers"][0]["image"]),
        (&json!(2), &json!("i:2"))
    );

    assert_eq!(
        stage.feed("apply --server-side -f -", &deployment("i:2")).await,
        "deployment.apps/web serverside-applied\n"
    );
    let refused = stage.fail("apply --server-side --field-manager=other -f -", &deployment("i:3")).await;
    assert!(
        refused.contains(r#"conflict with "kubectl": .spec.template.spec.containers[name="app"].image"#),
        "{refused}"
    );
    stage.feed("apply --server-side --field-manager=other --force-conflicts -f -", &deployment("i:3")).await;
    let strict = stage.fail("apply -f -", &deployment("i:3").replace("\"replicas\"", "\"replica\"")).await;
    assert!(strict.contains("unknown field \"spec.replica\""), "{strict}");
}

#[tokio::test]
async fn it_changes_things() {
    let Some(stage) = Stage::new().await else { return };
    assert_eq!(
        stage.run("create deployment web --image=i:1 --replicas=2").await,
        "deployment.apps/web created\n"
    );
    assert_eq!(stage.run("scale deployment web --replicas=3").await, "deployment.apps/web scaled\n");
    stage.run("annotate deployment web a=b").await;
    stage.run("label deployment web c=d").await;
    stage.run("set image deployment/web i=i:2").await;
    stage.run("patch deployment web -p {\"spec\":{\"paused\":true}}").await;
    stage.run("patch deployment web --type=json -p [{\"op\":\"remove\",\"path\":\"/spec/paused\"}]").await;
    assert_eq!(stage.run("edit deployment web").await, "deployment.apps/web edited\n");
    let web = stage.get("deployment web").await;
    assert_eq!((&web["spec"]["replicas"], &web["metadata"]["labels"]["c"]), (&json!(7), &json!("d")));
    // Each of the changes counts, except that of the label.
    assert_eq!(web["metadata"]["generation"], 7);
    let managers: Vec<_> =
        web["metadata"]["managedFields"].as_array().unwrap().iter().map(|it| &it["manager"]).collect();
    assert!(
        managers.contains(&&json!("kubectl-edit")) && managers.contains(&&json!("kubectl-set")),
        "{managers:?}"
    );

    let table = stage.run("get deployment web -o wide").await;
    assert!(table.contains("UP-TO-DATE") && table.contains("app=web"), "{table}");
    let told = stage.run("describe deployment web").await;
    assert!(told.contains("RollingUpdateStrategy:  25% max unavailable, 25% max surge"), "{told}");
    assert!(stage.run("delete deployment web").await.contains("deleted"));
    assert!(stage.fail("get deployment web", "").await.contains("not found"));
}

#[tokio::test]
async fn it_waits_for_what_others_write() {
    let Some(stage) = Stage::new().await else { return };
    stage.feed("apply -f -", &deployment("i:1")).await;
    assert!(stage.fail("rollout status deployment/web --timeout=1s", "").await.contains("timed out"));
    let mut wait = stage.command("wait deployment/web --for=condition=Available --timeout=20s");
    let wait = spawn_blocking(move || wait.output().unwrap());
    let status = json!({"status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2,
        "availableReplicas": 2, "conditions": [{"type": "Available", "status": "True", "reason": "x", "message": "y"}]}});
    stage.run(&format!("patch deployment web --subresource=status --type=merge -p {status}")).await;
    assert!(wait.await.unwrap().status.success());
    assert!(
        stage.run("rollout status deployment/web --timeout=20s").await.contains("successfully rolled out")
    );
    assert!(stage.run("get deployment web").await.contains("2/2"));
}

#[tokio::test]
async fn it_says_that_pods_do_not_run() {
    let Some(stage) = Stage::new().await else { return };
    let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "n",
        "containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80}]}]}}"#;
    stage.feed("create -f -", pod).await;
    stage.run(r#"patch pod p --subresource=status --type=merge -p {"status":{"phase":"Running"}}"#).await;
    for command in ["logs p", "logs -f p", "exec p -- ls", "attach p", "port-forward pod/p :80", "cp p:/a b"]
    {
        let said = stage.fail(command, "").await;
        assert!(said.contains("Pods do not run in the sandbox"), "kubectl {command}: {said}");
    }
    assert!(stage.fail("logs nobody", "").await.contains("pods \"nobody\" not found"));
}

#[tokio::test]
async fn it_shows_a_node_that_is_ready() {
    let sandbox = Sandbox::default();
    let _running = sandbox.run(controllers::standard());
    let Some(stage) = Stage::of(sandbox).await else { return };
    stage.run("wait node/sandbox --for=create --timeout=20s").await;
    stage.run("wait node/sandbox --for=condition=Ready --timeout=20s").await;
    // In Go's words, as images and selectors have them.
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let node = stage.get("nodes").await["items"][0].clone();
    assert_eq!(node["status"]["nodeInfo"]["architecture"], architecture);
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/arch"], architecture);
    let table = stage.run("get nodes --no-headers -o wide").await;
    let cells: Vec<_> = table.split_whitespace().collect();
    assert_eq!([cells[0], cells[1], cells[2], cells[4]], ["sandbox", "Ready", "<none>", VERSION], "{table}");
    assert_eq!(cells[5], "127.0.0.1", "{table}");
    let told = stage.run("describe node sandbox").await;
    assert!(told.contains("kubelet is posting ready status"), "{told}");
    assert!(!told.contains("not-ready"), "{told}");
    stage.run("cordon sandbox").await;
    assert!(stage.run("get nodes").await.contains("Ready,SchedulingDisabled"));
}

#[tokio::test]
async fn it_watches() {
    use std::io::{BufRead as _, BufReader};
    let Some(stage) = Stage::new().await else { return };
    stage.run("create configmap a").await;
    let mut child =
        stage.command("get configmaps -w --output-watch-events").stdout(Stdio::piped()).spawn().unwrap();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut next = async || {
        let line = tokio::time::timeout(std::time::Duration::from_secs(20), receiver.recv());
        line.await.unwrap().unwrap()
    };
    assert!(next().await.starts_with("EVENT"));
    assert!(next().await.starts_with("ADDED"));
    stage.run("label configmap a c=d").await;
    assert!(next().await.starts_with("MODIFIED"));
    stage.run("delete configmap a").await;
    assert!(next().await.starts_with("DELETED"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn it_works_with_custom_resources() {
    let Some(stage) = Stage::new().await else { return };
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "beds.garden.io"}, "spec": {"group": "garden.io", "scope": "Namespaced",
        "names": {"plural": "beds", "kind": "Bed", "shortNames": ["bd"]}, "versions": [{"name": "v1", "served": true,
        "storage": true, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size"}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1},
                "colour": {"type": "string", "default": "red"}}},
            "status": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}});
    stage.feed("apply -f -", &definition.to_string()).await;
    stage.run("wait crd/beds.garden.io --for=condition=Established --timeout=10s").await;
    let bed = |size: i32| {
        json!({"apiVersion": "garden.io/v1", "kind": "Bed", "metadata": {"name": "b"}, "spec": {"size": size}}).to_string()
    };
    assert_eq!(stage.feed("apply -f -", &bed(2)).await, "bed.garden.io/b created\n");
    let refused = stage.fail("apply -f -", &bed(0)).await;
    assert!(refused.contains("spec.size in body should be greater than or equal to 1"), "{refused}");
    let table = stage.run("get bd").await;
    assert!(table.starts_with("NAME   SIZE\nb      2"), "{table}");
    stage.run("scale bed b --replicas=4").await;
    let object = stage.get("bed b").await;
    assert_eq!(
        (&object["spec"], &object["metadata"]["generation"]),
        (&json!({"size": 4, "colour": "red"}), &json!(2))
    );
    stage.run("delete crd beds.garden.io").await;
    // kubectl remembers for a while what there was.
    assert!(stage.fail("get beds", "").await.contains("(NotFound)"));
}

#[tokio::test]
async fn it_asks_what_users_may_do() {
    let Some(stage) = Stage::of(Sandbox::builder().rbac(true).build()).await else { return };
    stage.run("create namespace shop").await;
    stage.run("create rolebinding bob -n shop --clusterrole=edit --user=bob").await;
    stage.run("create clusterrolebinding carol --clusterrole=view --group=support").await;
    stage.run("create role maps -n shop --verb=get --resource=configmaps --resource-name=settings").await;
    stage.run("create rolebinding robot -n shop --role=maps --serviceaccount=shop:robot").await;
    let robot = "--as system:serviceaccount:shop:robot";
    for (asked, expected) in [
        ("delete nodes", "yes"),
        ("create deployments.apps -n shop --as bob", "yes"),
        ("create deployments.apps -n default --as bob", "no"),
        ("update deployments.apps --subresource=scale -n shop --as bob", "yes"),
        ("create roles.rbac.authorization.k8s.io -n shop --as bob", "no"),
        ("list pods -A --as carol --as-group support", "yes"),
        ("list secrets -A --as carol --as-group support", "no"),
        ("list pods --as carol", "no"),
        (&format!("get configmap/settings -n shop {robot}"), "yes"),
        (&format!("get configmap/other -n shop {robot}"), "no"),
        (&format!("get configmaps -n shop {robot}"), "no"),
        ("get /version --as dave", "yes"),
        ("get /metrics --as dave", "no"),
        ("impersonate serviceaccounts -n shop --as bob", "yes"),
    ] {
        let output = stage.output(&format!("auth can-i {asked}"), "").await;
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.trim(), expected, "can-i {asked}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let view = stage.run("describe clusterrole view").await;
    assert!(view.contains("deployments.apps/scale"), "{view}");
    let list = stage.run("auth can-i --list -n shop --as bob").await;
    assert!(list.contains("deployments.apps") && list.contains("selfsubjectaccessreviews"), "{list}");

    let refused = stage.fail("get secrets -n default --as bob", "").await;
    let message = "secrets is forbidden: User \"bob\" cannot list resource \"secrets\" in API group \"\" in the namespace \"default\"";
    assert!(refused.contains(message), "{refused}");
    stage.run("create deployment web -n shop --image=i:1 --as bob").await;
    stage.run("get namespaces --as carol --as-group support").await;
    // Whoever acts as another must be allowed to.
    std::fs::write(stage.folder.path().join("bob"), stage.served.kubeconfig(&User::new("bob", &[]))).unwrap();
    let bob = stage.folder.path().join("bob");
    let refused = stage.fail(&format!("get pods --as alice --kubeconfig {}", bob.display()), "").await;
    let message = "users \"alice\" is forbidden: User \"bob\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope";
    assert!(refused.contains(message), "{refused}");
}
