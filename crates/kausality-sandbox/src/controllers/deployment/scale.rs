//! How Pods are shared between the ReplicaSets of a Deployment.

use std::cmp::Reverse;

use serde_json::json;

use super::{
    super::{REPLICA_SETS, Write, object},
    Rollout, Set, Sides,
    sets::{self, DESIRED, MOST},
};

impl Rollout<'_> {
    /// Asks a ReplicaSet for another number of Pods. Says whether that is another one.
    pub(super) fn scale(&mut self, set: &Set, replicas: i64) -> bool {
        if set.replicas == replicas {
            return false;
        }
        self.write_size(set, replicas);
        true
    }

    fn write_size(&mut self, set: &Set, replicas: i64) {
        let mut copy = (*set.object).clone();
        copy["spec"]["replicas"] = json!(replicas);
        sets::set_limits(&mut copy, self.limits);
        self.writes.push(Write::update(&REPLICA_SETS, copy));
    }

    /// Gives the new ReplicaSet as many Pods as it may have. Says whether it had another number.
    pub(super) fn scale_new(&mut self, sides: &Sides) -> bool {
        let Some(new) = &sides.new else { return false };
        let running = sides.all().map(|set| set.replicas).sum();
        let size = if new.replicas > self.limits.replicas {
            self.limits.replicas
        } else {
            self.limits.new_replicas(new.replicas, running)
        };
        self.scale(new, size)
    }

    /// Takes as many Pods from the old ReplicaSets as can be missed: first those that are not available anyway. Says
    /// whether there were any.
    pub(super) fn scale_old(&mut self, sides: &Sides) -> bool {
        let Some(new) = &sides.new else { return false };
        let running: i64 = sides.all().map(|set| set.replicas).sum();
        // New Pods that are not available yet cannot stand in for old ones.
        let surplus = running - self.limits.fewest() - (new.replicas - new.available());
        if surplus <= 0 || sides.old.iter().all(|set| set.replicas == 0) {
            return false;
        }
        let mut sizes: Vec<_> = sides.old.iter().map(|set| set.replicas).collect();
        let mut left = surplus;
        for (size, set) in sizes.iter_mut().zip(&sides.old) {
            let broken = (*size - set.available()).clamp(0, left);
            *size -= broken;
            left -= broken;
        }
        let available: i64 = sides.all().map(Set::available).sum();
        // Counters of Pods that are on their way out must not be spent twice.
        let mut left = (available - self.limits.fewest()).clamp(0, left);
        for size in &mut sizes {
            let taken = (*size).min(left);
            *size -= taken;
            left -= taken;
        }
        let mut scaled = false;
        for (set, size) in sides.old.iter().zip(sizes) {
            scaled |= self.scale(set, size);
        }
        scaled
    }

    /// Whether the Deployment's size has changed since its ReplicaSets were last scaled.
    pub(super) fn is_scaled(&mut self) -> bool {
        let sides = self.sides(false);
        let wanted = self.limits.replicas;
        let differs = |set: &Set| set.number(DESIRED).is_some_and(|desired| desired != wanted);
        sides.all().filter(|set| set.replicas > 0).any(differs)
    }

    /// Brings all ReplicaSets to the Deployment's size: the one that has Pods, or all of them in proportion.
    pub(super) fn scale_all(&mut self, sides: &Sides) {
        let active: Vec<_> = sides.all().filter(|set| set.replicas > 0).cloned().collect();
        let latest = || sides.new.as_ref().or_else(|| sides.old.iter().max_by_key(|set| set.created));
        match active.as_slice() {
            [] => {
                if let Some(set) = latest() {
                    self.scale(set, self.limits.replicas);
                }
            }
            [set] => {
                self.scale(set, self.limits.replicas);
            }
            _ if self.is_saturated(sides) => {
                for set in sides.old.iter().filter(|set| set.replicas > 0) {
                    self.scale(set, 0);
                }
            }
            _ if super::recreates(&self.deployment) => {}
            _ => self.scale_in_proportion(active),
        }
    }

    /// Whether the new ReplicaSet has all it wants, so that the others need none.
    fn is_saturated(&self, sides: &Sides) -> bool {
        let wanted = self.limits.replicas;
        let full = |new: &Set| {
            new.replicas == wanted && new.number(DESIRED) == Some(wanted) && new.available() == wanted
        };
        sides.new.as_ref().is_some_and(full)
    }

    /// Shares what is added or taken in proportion to the sizes; the biggest gets what is left over.
    fn scale_in_proportion(&mut self, mut active: Vec<Set>) {
        let running: i64 = active.iter().map(|set| set.replicas).sum();
        let allowed = if self.limits.replicas > 0 { self.limits.most() } else { 0 };
        let add = allowed - running;
        if add >= 0 {
            active.sort_by_key(|set| (Reverse(set.replicas), Reverse(set.created)));
        } else {
            active.sort_by_key(|set| (Reverse(set.replicas), set.created));
        }
        let mut left = add;
        let mut sizes = Vec::with_capacity(active.len());
        for set in &active {
            let share = self.share(set);
            let share = if add > 0 { share.min(left) } else { share.max(left) };
            let share = if add == 0 { 0 } else { share };
            left -= share;
            sizes.push(set.replicas + share);
        }
        if let Some(biggest) = sizes.first_mut() {
            *biggest = (*biggest + left).max(0);
        }
        for (set, size) in active.iter().zip(sizes) {
            let noted = set.number(DESIRED) == Some(self.limits.replicas)
                && set.number(MOST) == Some(self.limits.most());
            if size != set.replicas || !noted {
                self.write_size(set, size);
            }
        }
    }

    /// How much a ReplicaSet should grow or shrink to keep its share of the Deployment.
    fn share(&self, set: &Set) -> i64 {
        if self.limits.replicas == 0 {
            return -set.replicas;
        }
        let before = set.number(MOST).filter(|most| *most > 0);
        let before = before.unwrap_or_else(|| object::int(&self.deployment["status"]["replicas"]));
        if before <= 0 {
            return 0;
        }
        (2 * set.replicas * self.limits.most() + before) / (2 * before) - set.replicas
    }
}
