//! What somebody asked for in a recording: inputs of controllers, and hints.

use std::collections::VecDeque;

use kausality_api::{identity::Hashes, policy::Input};
use kausality_core::{
    Decision, Known, KnownParent, Summary,
    cause::Cause,
    inputs::{self, Changed, Recent},
    policy::Policies,
    review::Request,
};

/// What else changed before a request.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The group and resource of the parent, if it was found.
    pub parent: Option<(String, String)>,
    /// The group and resource of the input that explains the request.
    pub input: Option<(String, String)>,
    /// Of a drift: how what came shortly before could be declared as inputs, a list per change, the narrowest first.
    pub candidates: Vec<Vec<Input>>,
}

/// The group and resource of a parent.
pub(super) fn parent(known: &KnownParent) -> Option<(String, String)> {
    let KnownParent::Found { summary, resource } = known else { return None };
    Some((summary.id.group().to_owned(), resource.to_string()))
}

/// How many changes are remembered that may be inputs of something.
const MAX_CHANGES: usize = 4096;

/// The changes, as far as they are remembered.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Of what any controller is known or declared to act on, oldest first.
    inputs: VecDeque<Changed>,
    /// Of anything, lately.
    recent: Recent,
}

impl Changes {
    /// Keeps what somebody asked for.
    pub(super) fn note(&mut self, policies: &Policies, change: Changed) {
        if inputs::is_input(policies, change.object.group(), &change.resource) {
            if self.inputs.len() >= MAX_CHANGES {
                self.inputs.pop_front();
            }
            self.inputs.push_back(change.clone());
        }
        self.recent.note(change);
    }

    /// Finds out what else changed: the last change of something that the parent's controller acts on, and, before a drift,
    /// what came shortly before. Returns how the latter could be declared as inputs.
    pub(super) fn look_around(
        &self,
        request: &Request<'_>,
        parent: &Summary,
        policies: &Policies,
        known: &mut Known,
        decision: &Decision,
    ) -> Vec<Vec<Input>> {
        let KnownParent::Found { resource, .. } = &known.parent else { return Vec::new() };
        let declared = inputs::declared(policies, parent.id.group(), resource);
        let mut controllers = known.below_parent.users.clone();
        parent.controllers().iter().for_each(|user| controllers.note(user, &Hashes::default()));
        if !declared.is_empty() {
            let input = inputs::last(&declared, parent, &controllers, self.inputs.iter());
            known.input = input.or(known.input.take());
        }
        if decision.cause != Some(Cause::Drift) {
            return Vec::new();
        }
        known.hints = self.recent.hints(request, parent, &controllers, &declared, known.now);
        self.recent.candidates(request, parent, &controllers, &declared, known.now)
    }
}
