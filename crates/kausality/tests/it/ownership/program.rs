//! Programs: what several managers do to one object, one after the other.

use crate::ownership::{
    kinds::{KINDS, Kind},
    random::Random,
};

#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    pub(crate) kind: Kind,
    pub(crate) steps: Vec<Step>,
}

/// One request. What it says in detail depends on the object at that time, and on its own seed, so that a program is
/// still one when other steps are left out.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) manager: String,
    pub(crate) seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    Apply,
    ForceApply,
    ApplyStatus,
    Put,
    MergePatch,
    JsonPatch,
    StrategicPatch,
    PutStatus,
    PatchStatus,
    PutScale,
    PatchScale,
    /// Forgets who owns what.
    Reset,
    /// `kubectl apply` as it was before server-side apply.
    ClientSideApply,
}

impl Action {
    pub(crate) const ALL: [Self; 13] = [
        Self::Apply,
        Self::ForceApply,
        Self::ApplyStatus,
        Self::Put,
        Self::MergePatch,
        Self::JsonPatch,
        Self::StrategicPatch,
        Self::PutStatus,
        Self::PatchStatus,
        Self::PutScale,
        Self::PatchScale,
        Self::Reset,
        Self::ClientSideApply,
    ];
}

/// Managers for whom nothing special holds, and kubectl, for whom the API server has a special rule.
const APPLIERS: [&str; 4] = ["alpha", "beta", "gamma", "kubectl"];
const UPDATERS: [&str; 4] = ["alpha", "beta", "ctl<&>", "kubectl-edit"];

impl Program {
    pub(crate) fn generate(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let kind = *random.pick(&KINDS);
        let steps = match random.below(100) {
            0..5 => crowd(kind, &mut random),
            5..15 => migration(kind, &mut random),
            _ => (0..3 + random.below(10)).map(|_| step(kind, &mut random)).collect(),
        };
        Self { seed, kind, steps }
    }
}

/// More updaters than the API server keeps apart.
fn crowd(kind: Kind, random: &mut Random) -> Vec<Step> {
    let updater = |nth: usize, random: &mut Random| {
        let action = *random.pick(&[Action::Put, Action::MergePatch, Action::Put]);
        Step { action, manager: format!("u{nth:02}"), seed: random.next() }
    };
    let mut steps: Vec<_> = (0..12 + random.below(4)).map(|nth| updater(nth, random)).collect();
    for _ in 0..3 {
        let at = random.below(steps.len());
        steps.insert(at, step(kind, random));
    }
    steps
}

/// From client-side to server-side apply.
fn migration(kind: Kind, random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..1 + random.below(2) {
        let seed = random.next();
        steps.push(Step {
            action: Action::ClientSideApply,
            manager: "kubectl-client-side-apply".to_owned(),
            seed,
        });
    }
    for _ in 0..1 + random.below(3) {
        steps.push(step(kind, random));
        // Now and then it applies the very same: that is what must not conflict.
        let seed = if random.chance(50) { steps[0].seed } else { random.next() };
        steps.push(Step { action: Action::Apply, manager: "kubectl".to_owned(), seed });
    }
    steps
}

fn step(kind: Kind, random: &mut Random) -> Step {
    let action = action(kind, random);
    let applies = matches!(action, Action::Apply | Action::ForceApply | Action::ApplyStatus);
    let manager = match action {
        Action::ClientSideApply => "kubectl-client-side-apply",
        _ if applies => random.pick(&APPLIERS),
        _ => random.pick(&UPDATERS),
    };
    Step { action, manager: manager.to_owned(), seed: random.next() }
}

fn action(kind: Kind, random: &mut Random) -> Action {
    if kind == Kind::Deployment && random.chance(12) {
        return *random.pick(&[Action::PutScale, Action::PatchScale]);
    }
    loop {
        let action = match random.below(94) {
            0..27 => Action::Apply,
            27..42 => Action::ForceApply,
            42..47 => Action::ApplyStatus,
            47..64 => Action::Put,
            64..70 => Action::MergePatch,
            70..75 => Action::JsonPatch,
            75..80 => Action::StrategicPatch,
            80..84 => Action::PutStatus,
            84..88 => Action::PatchStatus,
            88..91 => Action::Reset,
            _ => Action::ClientSideApply,
        };
        let possible = match action {
            Action::StrategicPatch => kind.is_built_in(),
            Action::ApplyStatus | Action::PutStatus | Action::PatchStatus => kind.has_status(),
            _ => true,
        };
        if possible {
            return action;
        }
    }
}
