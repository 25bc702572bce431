//! What approval policies take of the memory: a part of each, if they do not all fit.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use kausality_api::exception::ApprovalPolicy;
use kausality_core::exceptions::{self, Compiled, PolicyFault};
use serde_json::Value;

/// The most memory that the expressions and patterns of all policies take together, compiled.
pub(super) const MAX_SIZE: usize = 64 << 20;

/// How much of a policy there is memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// None of its expressions and patterns: its rules that deny do so whatever these say.
    Bare,
    /// Rules that deny.
    Denying,
    /// All rules.
    Whole,
}

/// The memory that expressions and patterns of a policy take: those of rules that deny, and all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) denying: usize,
    pub(super) whole: usize,
}

/// How much of each policy fits into some memory: rules that deny come first, and what is there first, before the others.
pub(super) fn share(sizes: impl Iterator<Item = Size> + Clone, mut room: usize) -> Vec<Fit> {
    let mut take = |size: usize| {
        let left = room.checked_sub(size);
        room = left.unwrap_or(room);
        left.is_some()
    };
    let denying = sizes.clone().map(|size| if take(size.denying) { Fit::Denying } else { Fit::Bare });
    let mut fits: Vec<Fit> = denying.collect();
    for (fit, size) in fits.iter_mut().zip(sizes) {
        if *fit == Fit::Denying && take(size.whole.saturating_sub(size.denying)) {
            *fit = Fit::Whole;
        }
    }
    fits
}

/// The rules of a policy, as far as they fit.
pub(super) struct Rules {
    /// All of them, or why not.
    pub(super) compiled: Result<Compiled, Vec<PolicyFault>>,
    /// What holds otherwise: rules that deny.
    denying: Option<Compiled>,
    pub(super) size: Size,
    pub(super) fit: Fit,
    _taken: Taken,
}

/// Memory that is taken as long as there is somebody who holds it.
struct Taken {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Rules {
    /// Those of a policy that can be read.
    pub(super) fn of(policy: &ApprovalPolicy, taken: &Arc<AtomicUsize>) -> Self {
        let compiled = exceptions::compile(policy);
        let denying = compiled.is_err().then(|| exceptions::prohibitions(policy));
        Self::new(compiled, denying, taken)
    }

    /// Those of one that cannot, as far as they can.
    pub(super) fn salvaged(policy: &Value, faults: Vec<PolicyFault>, taken: &Arc<AtomicUsize>) -> Self {
        Self::new(Err(faults), exceptions::salvaged(policy), taken)
    }

    fn new(
        compiled: Result<Compiled, Vec<PolicyFault>>,
        denying: Option<Compiled>,
        taken: &Arc<AtomicUsize>,
    ) -> Self {
        let whole = compiled.as_ref().ok().or(denying.as_ref());
        let size = Size {
            denying: whole.map_or(0, |whole| whole.denying().size()),
            whole: whole.map_or(0, Compiled::size),
        };
        Self { compiled, denying, size, fit: Fit::Whole, _taken: Taken::new(size.whole, taken) }
    }

    /// What holds.
    pub(super) fn in_force(&self) -> Option<&Compiled> {
        self.compiled.as_ref().ok().or(self.denying.as_ref())
    }

    /// No more of them than fits.
    pub(super) fn cut(&self, fit: Fit, taken: &Arc<AtomicUsize>) -> Self {
        let denying =
            self.in_force().map(|rules| if fit == Fit::Bare { rules.bare() } else { rules.denying() });
        let mut faults = self.compiled.as_ref().err().cloned().unwrap_or_default();
        faults.retain(|fault| !is_unfit(fault));
        faults.push(unfit(fit));
        let size = denying.as_ref().map_or(0, Compiled::size);
        Self { compiled: Err(faults), denying, size: self.size, fit, _taken: Taken::new(size, taken) }
    }
}

impl Taken {
    fn new(bytes: usize, of: &Arc<AtomicUsize>) -> Self {
        of.fetch_add(bytes, Ordering::Relaxed);
        Self { bytes, of: of.clone() }
    }
}

const UNFIT: &str = "does not fit into the memory for expressions and patterns of all policies";

fn is_unfit(fault: &PolicyFault) -> bool {
    fault.message.starts_with(UNFIT)
}

fn unfit(fit: Fit) -> PolicyFault {
    let denying = match fit {
        Fit::Bare => "; rules that deny do so whatever their expressions and patterns say",
        Fit::Denying | Fit::Whole => "",
    };
    let message = format!("{UNFIT} ({} MiB): delete or simplify policies{denying}", MAX_SIZE >> 20);
    PolicyFault { field: "spec.rules".to_owned(), message }
}
