//! Fields whose ownership is not kept.

use crate::path::Step;
use crate::set::{FieldSet, Node};

/// Which fields are kept of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// All but these and what lies below them.
    Except(FieldSet),
    /// Those on the way of one of these patterns, and what lies below its end. `None` stands for any step.
    Only(Vec<Vec<Option<Step>>>),
}

impl Filter {
    /// What is kept of a set.
    pub fn of(&self, set: &FieldSet) -> FieldSet {
        match self {
            Self::Except(fields) => set.recursive_difference(fields),
            Self::Only(patterns) => only(set, &patterns.iter().map(Vec::as_slice).collect::<Vec<_>>()),
        }
    }
}

fn only(set: &FieldSet, patterns: &[&[Option<Step>]]) -> FieldSet {
    if patterns.iter().any(|pattern| pattern.is_empty()) {
        return set.clone();
    }
    let keep = |node: &Node| {
        let rest: Vec<_> = patterns
            .iter()
            .filter_map(|pattern| pattern.split_first())
            .filter(|(first, _)| first.as_ref().is_none_or(|step| *step == node.step))
            .map(|(_, rest)| rest)
            .collect();
        (!rest.is_empty()).then(|| Node { below: only(&node.below, &rest), ..node.clone() })
    };
    FieldSet::of_nodes(set.nodes().iter().filter_map(keep).collect())
}
