//! Values: what is created, what changes, what the server chooses, and what must not show.

use crate::plan::stage::*;

const BALANCER: &str = "
apiVersion: v1
kind: Service
metadata: {name: lb}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: {app: web}
  ports:
  - {name: http, port: 80, targetPort: web}
  - {name: dns, port: 53}
  - {name: dns-udp, port: 53, protocol: UDP}
";

/// Regression: what the server allocates was once taken for drift for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_load_balancer_is_created_with_unknown_ports_and_then_plans_empty() {
    let Some(stage) = stage().await else { return };
    let output = stage.plan(BALANCER, &[]);
    assert_eq!(output.code, 1, "{output:#?}");
    insta::assert_snapshot!("create-load-balancer", output.stdout);
    let document = stage.plan(BALANCER, &["-o", "json"]).json();
    let service = only(&document);
    assert_eq!(service["action"], "create");
    for path in [
        "spec.clusterIP",
        "spec.clusterIPs",
        "spec.healthCheckNodePort",
        "spec.ports[port=80,protocol=TCP].nodePort",
        "spec.ports[port=53,protocol=TCP].nodePort",
        "spec.ports[port=53,protocol=UDP].nodePort",
    ] {
        assert_eq!(field(service, path)["knownAfterApply"], true, "{path}: {service:#}");
        assert_eq!(field(service, path).get("after"), None, "{path}: {service:#}");
    }
    assert_eq!(field(service, "spec.type")["after"], "LoadBalancer");
    stage.apply("ci", BALANCER);
    stage.plans_nothing(BALANCER);

    // One port more is one port to be allocated; the others stay.
    let more = format!("{BALANCER}  - {{name: more, port: 81}}\n");
    let document = stage.plan(&more, &["-o", "json"]).json();
    let service = only(&document);
    assert_eq!(service["action"], "change");
    assert_eq!(field(service, "spec.ports[port=81,protocol=TCP].nodePort")["knownAfterApply"], true);
    let paths: Vec<&str> =
        service["fields"].as_array().unwrap().iter().map(|field| field["path"].as_str().unwrap()).collect();
    assert!(paths.iter().all(|path| path.starts_with("spec.ports[port=81,protocol=TCP].")), "{paths:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_plan_empty_however_their_quantities_are_written() {
    let Some(stage) = stage().await else { return };
    let created = stage.plan(DEPLOYMENT, &[]);
    insta::assert_snapshot!("create-deployment", created.stdout);
    stage.apply("ci", DEPLOYMENT);
    stage.plans_nothing(DEPLOYMENT);
    stage.plans_nothing(&DEPLOYMENT.replace("cpu: 1000m", "cpu: 1").replace("1024Mi", "1Gi"));

    let changed = DEPLOYMENT
        .replace("cpu: 1000m", "cpu: 1500m")
        .replace("args: [a, b]", "args: [a, c]")
        .replace("mountPath: /var/tmp", "mountPath: /var/cache")
        .replace("      containers:\n", "      containers:\n      - {name: first, image: proxy:1}\n");
    let output = stage.plan(&changed, &[]);
    assert_eq!(output.code, 1);
    insta::assert_snapshot!("change-deployment", output.stdout);

    // Containers in another order are another template.
    stage.apply("ci", &changed);
    let swapped = DEPLOYMENT
        .replace("cpu: 1000m", "cpu: 1500m")
        .replace("args: [a, b]", "args: [a, c]")
        .replace("mountPath: /var/tmp", "mountPath: /var/cache")
        .replace("      volumes:", "      - {name: first, image: proxy:1}\n      volumes:");
    let document = stage.plan(&swapped, &["-o", "json"]).json();
    let containers = field(only(&document), "spec.template.spec.containers");
    assert_eq!(containers["change"], "reorder", "{document:#}");
    stage.apply("ci", &swapped);
    stage.plans_nothing(&swapped);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_declared_no_more_is_pruned() {
    let Some(stage) = stage().await else { return };
    let map =
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, annotations: {a: b}}, data: {x: '1', v: '2'}}";
    stage.apply("ci", map);
    let document =
        stage.plan(&map.replace(", v: '2'", "").replace(", annotations: {a: b}", ""), &["-o", "json"]).json();
    let map = only(&document);
    let gone = field(map, "data.v");
    assert_eq!((&gone["change"], &gone["before"]), (&"remove".into(), &"2".into()));
    assert_eq!((names(&gone["ownersBefore"]), names(&gone["ownersAfter"])), (vec!["ci"], vec![]));
    assert_eq!(field(map, "metadata.annotations.a")["change"], "remove");
    assert_eq!(map["fields"].as_array().unwrap().len(), 2, "{map:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_objects_come_in_their_order_and_from_files_and_folders() {
    let Some(stage) = stage().await else { return };
    let folder = stage.folder().join("manifests");
    std::fs::create_dir(&folder).unwrap();
    let object = |nth: usize| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m{nth:03}}}, data: {{a: b}}}}\n")
    };
    for nth in 0..60 {
        std::fs::write(folder.join(format!("{nth:03}.yaml")), object(nth)).unwrap();
    }
    stage.apply("ci", &(0..40).map(object).collect::<Vec<String>>().join("---\n"));
    let plan = |path: &std::path::Path| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["plan", "--manager", "ci", "-o", "json", "--kubeconfig"])
            .arg(stage.kubeconfig())
            .arg("-f")
            .arg(path)
            .output()
            .unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), document)
    };
    let (code, document) = plan(&folder);
    assert_eq!(code, 1);
    assert_eq!(document["summary"]["create"], 20, "{document:#}");
    assert_eq!(document["summary"]["none"], 40);
    let names: Vec<&str> = document["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| object["name"].as_str().unwrap())
        .collect();
    assert!(names.is_sorted(), "{names:?}");
    assert_eq!(plan(&folder.join("005.yaml")).0, 0);
    assert_eq!(plan(&folder.join("055.yaml")).0, 1);

    // Nothing was written.
    let left = stage.must(&["get", "configmaps", "-o", "name"]);
    assert_eq!(left.lines().filter(|line| line.starts_with("configmap/m")).count(), 40, "{left}");
    let twice = [object(1), object(1)].join("---\n");
    let document = stage.plan(&twice, &["-o", "json"]).json();
    assert!(document["objects"][1]["notes"][0].as_str().unwrap().contains("is declared in"), "{document:#}");
}
