//! Reviews that are as large as anybody can make them, beside the writes of a cluster.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use kausality_testbed::free_port;
use tokio::task::JoinSet;

use crate::real::{clients::post, stage::*};

/// An Ingress whose annotations, which people ask for something by, come in another order.
fn review(annotations: usize) -> String {
    let object = |keys: &mut dyn Iterator<Item = usize>| {
        let annotations: Vec<String> = keys.map(|key| format!(r#""example.com/{key}":"on""#)).collect();
        format!(
            r#"{{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{{"name":"web","namespace":"default",
            "uid":"u","annotations":{{{}}}}},"spec":{{}}}}"#,
            annotations.join(",")
        )
    };
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"large",
        "operation":"UPDATE","namespace":"default","name":"web",
        "kind":{{"group":"networking.k8s.io","version":"v1","kind":"Ingress"}},
        "resource":{{"group":"networking.k8s.io","version":"v1","resource":"ingresses"}},
        "userInfo":{{"username":"alice"}},"oldObject":{},"object":{}}}}}"#,
        object(&mut (0..annotations)),
        object(&mut (0..annotations).rev()),
    )
}

/// Three reviews of 150,000 annotations at a time, one after the other: each is decided, and no write waits for them.
#[tokio::test(flavor = "multi_thread")]
async fn reviews_of_150_000_annotations_keep_no_write_waiting() {
    let Some(plane) = stage().await else { return };
    let address = format!("127.0.0.1:{}", free_port().unwrap());
    let resources = "configmaps,ingresses.networking.k8s.io";
    let arguments = ["--register", "--bind-address", &address, "--resources", resources];
    let _webhook = Webhook::spawn(&plane, "large.log", &arguments);
    registered(&plane).await;

    let large = review(150_000);
    assert!(large.len() > 4 << 20, "{}", large.len());
    let enough = Arc::new(AtomicBool::new(false));
    let mut posting = JoinSet::new();
    for _ in 0..3 {
        let (large, address, enough) = (large.clone(), address.clone(), enough.clone());
        posting.spawn(async move {
            let mut decided = 0;
            while decided == 0 || !enough.load(Ordering::Relaxed) {
                match post(&address, large.clone()).await {
                    Ok(answer) => assert_eq!(answer["response"]["allowed"], true),
                    // Only that it takes too long may be said of it.
                    Err((code, said)) => assert!([503, 504].contains(&code), "{code} {said}"),
                }
                decided += 1;
            }
            decided
        });
    }
    let begun = Instant::now();
    for n in 0..20 {
        let name = format!("small-{n}");
        must(&plane, "alice", &["create", "configmap", &name]);
        assert_eq!(users(&get(&plane, &["configmap", &name])), ["alice"], "it was decided");
    }
    let took = begun.elapsed();
    enough.store(true, Ordering::Relaxed);
    let decided: usize = posting.join_all().await.into_iter().sum();
    println!("20 writes in {took:?} beside {decided} large reviews");
    assert!(took < PATIENCE, "{took:?}");
}
