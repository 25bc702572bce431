//! `kausality replay`.
mod engine;
mod world;
use engine::*;
use std::io::BufRead;
pub(crate) fn proto(path: &str) {
    let policy = std::env::args().nth(2);
    let mut settings = kausality_core::Settings::default();
    if policy.is_some() {
        let p: kausality_api::policy::Kausality = serde_json::from_str(r#"{"apiVersion":"a","kind":"Kausality","metadata":{"name":"l"},"spec":{"mode":"log","settle":"observedGeneration","resources":[{"apiGroups":["","apps","batch","example.com"],"resources":["*"]}]}}"#).unwrap();
        settings.policies = kausality_core::policy::Policies::new(vec![p]);
    }
    let mut e = Engine::new(settings);
    for (n, line) in std::io::BufReader::new(std::fs::File::open(path).unwrap()).lines().enumerate() {
        let line = line.unwrap();
        let j = e.review(line.as_bytes(), Source::Webhook).unwrap();
        match j.outcome {
            Outcome::Decided(d) => println!(
                "{} {} {} {} {} {:?} {:?} {:?} {:?} {:?} {} | {:?} {:?}",
                n + 1,
                j.operation.as_str(),
                j.kind,
                j.name,
                j.user,
                d.class,
                d.actor,
                d.phase,
                d.settled,
                d.cause,
                d.verdict.as_str(),
                d.trace.map(|t| t
                    .hops()
                    .iter()
                    .map(|h| format!("{}/{}/{:?}/{:?}", h.user, h.name, h.generation, h.labels))
                    .collect::<Vec<_>>()),
                d.patch.annotations.keys().collect::<Vec<_>>()
            ),
            Outcome::Unjudged(w) => {
                println!("{} {} {} {} UNJUDGED {w}", n + 1, j.operation.as_str(), j.kind, j.name)
            }
        }
    }
}
