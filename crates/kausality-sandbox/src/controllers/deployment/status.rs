//! What a Deployment's status tells: counters, and how far it is.

use serde_json::{Value, json};

use super::{
    super::{
        Time,
        conditions::{self, Condition},
        object,
    },
    PROGRESSING, Rollout, Sides,
};

/// The condition that tells why Pods cannot be made.
const FAILURE: &str = "ReplicaFailure";
/// The reason of a rollout that has arrived.
const ARRIVED: &str = "NewReplicaSetAvailable";
/// The reason of a rollout that takes too long.
const LATE: &str = "ProgressDeadlineExceeded";

impl Rollout<'_> {
    /// Writes the counters, if they have changed.
    pub(super) fn write_status(&mut self, sides: &Sides) {
        let status = self.status(sides);
        self.write_changed(status);
    }

    /// Writes the counters and how far the rollout is, if that has changed.
    pub(super) fn write_progress(&mut self, sides: &Sides) {
        let mut status = self.status(sides);
        let held = &self.deployment["status"];
        let arrived = conditions::reason(held, PROGRESSING) == ARRIVED
            && object::int(&status["replicas"]) == object::int(&status["updatedReplicas"]);
        if !arrived {
            let subject = match &sides.new {
                Some(new) => format!("ReplicaSet \"{}\"", new.name()),
                None => format!("Deployment \"{}\"", object::name(&self.deployment)),
            };
            let condition = |status, reason, what| Condition {
                kind: PROGRESSING,
                status,
                reason,
                message: format!("{subject} {what}"),
            };
            if self.complete(&status) {
                let condition = condition("True", ARRIVED, "has successfully progressed.");
                conditions::set(&mut status, &condition, self.now);
            } else if progresses(held, &status) {
                conditions::renew(
                    &mut status,
                    &condition("True", "ReplicaSetUpdated", "is progressing."),
                    self.now,
                );
            } else if let Some(deadline) = self.deadline(&status) {
                if deadline <= self.now {
                    conditions::set(
                        &mut status,
                        &condition("False", LATE, "has timed out progressing."),
                        self.now,
                    );
                } else {
                    self.again = Some(deadline);
                }
            }
        }
        let failure = sides
            .new
            .iter()
            .chain(&sides.old)
            .find_map(|set| conditions::find(&set.object["status"], FAILURE));
        match failure {
            Some(failure) => {
                let text = |field| object::text(&failure[field]);
                let (status_of, reason) = (text("status"), text("reason"));
                let message = text("message").to_owned();
                let condition = Condition { kind: FAILURE, status: status_of, reason, message };
                conditions::set(&mut status, &condition, self.now);
            }
            None => conditions::remove(&mut status, FAILURE),
        }
        self.write_changed(status);
    }

    /// Whether the Deployment's status says that the rollout is done.
    pub(super) fn is_complete(&self) -> bool {
        self.complete(&self.deployment["status"])
    }

    fn write_changed(&mut self, status: Value) {
        if status != self.deployment["status"] {
            self.deployment["status"] = status;
            self.push_status();
        }
    }

    fn complete(&self, status: &Value) -> bool {
        let wanted = self.limits.replicas;
        let counters = ["replicas", "updatedReplicas", "availableReplicas"];
        counters.iter().all(|counter| object::int(&status[*counter]) == wanted)
            && object::int(&status["observedGeneration"]) >= object::generation(&self.deployment)
    }

    /// When a rollout that makes no progress is late, unless it is known to be.
    fn deadline(&self, status: &Value) -> Option<Time> {
        let condition = conditions::find(status, PROGRESSING)?;
        let known = [ARRIVED, LATE, "DeploymentPaused"].contains(&object::text(&condition["reason"]));
        let seconds = object::int_or(&self.deployment["spec"]["progressDeadlineSeconds"], 600);
        let last = object::moment(&condition["lastUpdateTime"])?;
        let deadline = last.after_seconds(u64::try_from(seconds).unwrap_or_default());
        (!known).then_some(deadline)
    }

    fn status(&self, sides: &Sides) -> Value {
        let sum = |counter: &str| sides.all().map(|set| set.status(counter)).sum::<i64>();
        let available = sum("availableReplicas");
        let wanted: i64 = sides.all().map(|set| set.replicas).sum();
        let updated = sides.new.as_ref().map_or(0, |new| new.status("replicas"));
        let held = &self.deployment["status"];
        let mut status = json!({ "observedGeneration": object::generation(&self.deployment) });
        object::count(&mut status, "replicas", sum("replicas"));
        object::count(&mut status, "updatedReplicas", updated);
        object::count(&mut status, "readyReplicas", sum("readyReplicas"));
        object::count(&mut status, "availableReplicas", available);
        object::count(&mut status, "unavailableReplicas", (wanted - available).max(0));
        status["terminatingReplicas"] = json!(sum("terminatingReplicas"));
        for field in ["collisionCount", "conditions"] {
            if !held[field].is_null() {
                status[field] = held[field].clone();
            }
        }
        let (state, reason, message) = if available >= self.limits.fewest() {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        let condition = Condition { kind: "Available", status: state, reason, message: message.to_owned() };
        conditions::set(&mut status, &condition, self.now);
        status
    }
}

/// Whether there are more new Pods, fewer old ones, or more that are ready or available.
fn progresses(before: &Value, after: &Value) -> bool {
    let more = |counter: &str| object::int(&after[counter]) > object::int(&before[counter]);
    let old = |status: &Value| object::int(&status["replicas"]) - object::int(&status["updatedReplicas"]);
    more("updatedReplicas") || more("readyReplicas") || more("availableReplicas") || old(after) < old(before)
}
