//! How many Pods a rolling update may add and miss.

use serde_json::Value;

use super::{super::object, recreates};

/// How many Pods a Deployment wants, may have, and may miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// How many it wants.
    pub(super) replicas: i64,
    /// How many more it may have.
    pub(super) surge: i64,
    /// How many fewer may be available.
    pub(super) unavailable: i64,
}

impl Limits {
    pub(super) fn of(deployment: &Value) -> Self {
        let replicas = object::int_or(&deployment["spec"]["replicas"], 1).max(0);
        if recreates(deployment) {
            return Self { replicas, surge: 0, unavailable: 0 };
        }
        let rolling = &deployment["spec"]["strategy"]["rollingUpdate"];
        let surge = share(&rolling["maxSurge"], replicas, 99);
        let unavailable = share(&rolling["maxUnavailable"], replicas, 0);
        // With neither, nothing could ever move.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { replicas, surge, unavailable: unavailable.min(replicas) }
    }

    /// The most Pods there may be.
    pub(super) fn most(self) -> i64 {
        self.replicas + self.surge
    }

    /// The fewest Pods that must be available.
    pub(super) fn fewest(self) -> i64 {
        self.replicas - self.unavailable
    }

    /// How big a new ReplicaSet of a size may become, next to so many Pods in all.
    pub(super) fn new_replicas(self, size: i64, running: i64) -> i64 {
        let room = (self.most() - running).max(0);
        size + room.min(self.replicas - size).max(0)
    }
}

/// A number, or a percentage of the replicas, plus this many hundredths before it is cut: 99 rounds up.
fn share(value: &Value, replicas: i64, hundredths: i64) -> i64 {
    let percent = |percent: i64| replicas.saturating_mul(percent).saturating_add(hundredths) / 100;
    match value {
        Value::Number(number) => number.as_i64().unwrap_or_default().max(0),
        Value::String(text) => match text.strip_suffix('%').and_then(|number| number.parse().ok()) {
            Some(number) => percent(number),
            None => text.parse().unwrap_or_default(),
        },
        _ => percent(25),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(replicas: i64, surge: Value, unavailable: Value, expected: (i64, i64)) {
        let rolling = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
        let limits = Limits::of(
            &json!({ "spec": { "replicas": replicas, "strategy": { "rollingUpdate": rolling } } }),
        );
        assert_eq!((limits.surge, limits.unavailable), expected, "{replicas} {rolling}");
    }

    #[test]
    fn surge_is_rounded_up_and_unavailability_down() {
        check(4, json!(null), json!(null), (1, 1));
        check(3, json!("25%"), json!("25%"), (1, 0));
        check(10, json!("25%"), json!("25%"), (3, 2));
        check(10, json!(2), json!("100%"), (2, 10));
        check(2, json!(0), json!(5), (0, 2));
        check(2, json!(0), json!(0), (0, 1));
        check(2, json!(0), json!("10%"), (0, 1));
        check(0, json!("25%"), json!("25%"), (0, 0));
    }
}
