//! Shows what a rollout changed, as Kausality does in warnings and reports.
//!
//! `cargo run -p kausality-fields --example deployment`

use kausality_fields::{Redaction, intent, redact};
use serde_json::json;
use std::io::{self, Write};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let redaction = Redaction::new("the salt of this installation");

    let old = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3, "template": {"spec": {
        "containers": [{"name": "app", "image": "shop:1.0", "args": ["--log=info", "--port=80"],
                        "ports": [{"containerPort": 80}]}]}}}});
    let new = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 5, "template": {"spec": {
        "containers": [{"name": "proxy", "image": "envoy:1.30"},
                       {"name": "app", "image": "shop:1.1", "args": ["--log=debug", "--port=80"],
                        "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}}}});
    let rollout = intent(Some(&old), Some(&new), &redaction);
    writeln!(out, "Rollout {}:\n{rollout}\n", rollout.hash())?;
    writeln!(out, "In short:\n{}\n", rollout.limited(2))?;

    let old = json!({"apiVersion": "v1", "kind": "Secret", "data": {"user": "YWRtaW4=", "password": "aHVudGVyMg=="}});
    let new = json!({"apiVersion": "v1", "kind": "Secret", "data": {"user": "YWRtaW4=", "password": "aHVudGVyMw=="}});
    writeln!(out, "Rotation:\n{}\n", intent(Some(&old), Some(&new), &redaction))?;
    writeln!(out, "The Secret in a report:\n{}", redact(&new, &redaction))
}
