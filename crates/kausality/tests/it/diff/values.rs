//! What the API server makes of values is no drift.

use crate::plan::stage::*;

const BALANCER: &str = "
apiVersion: v1
kind: Service
metadata: {name: front}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{name: dns, port: 53}, {name: dns-udp, port: 53, protocol: UDP}, {name: http, port: 80, targetPort: 8080}]
";

const ENVIRONMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: environment, annotations: {}}
spec:
  replicas: 0
  paused: false
  selector: {matchLabels: {app: e}}
  template:
    metadata: {labels: {app: e}}
    spec:
      containers:
      - name: app
        image: nginx
        env: [{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
";

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_allocates_fills_in_and_rewrites_is_no_drift() {
    let Some(stage) = stage().await else { return };
    for manifest in [BALANCER, DEPLOYMENT, ENVIRONMENT] {
        stage.apply("ci", manifest);
        assert_eq!(stage.verdicts("ci", manifest, &[]), Vec::<String>::new());
    }
    let ports = stage.must(&["get", "service", "front", "-o", "jsonpath={.spec.ports[*].nodePort}"]);
    assert_eq!(ports.split(' ').count(), 3, "the server allocates: {ports}");

    // `1000m` was declared and is stored as `1`; both are declared alike.
    let cpu = "spec.template.spec.containers[name=app].resources.limits.cpu";
    for (amount, expected) in
        [("'1'", None), ("1", None), ("1.0", None), ("2", Some(format!("own-drift! {cpu} 2 \"1\" ci")))]
    {
        let manifest = DEPLOYMENT.replace("cpu: 1000m", &format!("cpu: {amount}"));
        assert_eq!(stage.verdicts("ci", &manifest, &[]), Vec::from_iter(expected), "{amount}");
    }

    // A part that is taken out of what is owned as a whole is a difference; one that the server adds is none.
    let declared = ENVIRONMENT.replace("metadata.name}", "metadata.uid}");
    let path = "spec.template.spec.containers[name=app].env[name=NAME].valueFrom.fieldRef";
    let verdicts = stage.verdicts("ci", &declared, &[]);
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    assert!(verdicts[0].starts_with(&format!("own-drift! {path} ")), "{verdicts:?}");

    // Who may only read cannot ask the server what it would fill in: there is no telling.
    stage.must(&["create", "clusterrolebinding", "reader", "--clusterrole=view", "--user=reader"]);
    assert_eq!(stage.verdicts("ci", DEPLOYMENT, &["--as", "reader"]), Vec::<String>::new());
    let verdicts = stage.verdicts("ci", ENVIRONMENT, &["--as", "reader"]);
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    assert!(verdicts[0].starts_with(&format!("unknown {path} ")), "{verdicts:?}");

    // What is empty or zero, and left out by the server: before the manager has applied it, too.
    let verdicts = stage.verdicts("newcomer", ENVIRONMENT, &[]);
    assert!(verdicts.iter().all(|line| line.starts_with("takeover!")), "{verdicts:?}");
    stage.must(&["annotate", "service", "front", "a.b/c=d", "--field-manager=somebody"]);
    let empty = "{apiVersion: v1, kind: Service, metadata: {name: front, labels: {}}, spec: {publishNotReadyAddresses: false}}";
    assert_eq!(stage.verdicts("newcomer", empty, &[]), Vec::<String>::new());
}
