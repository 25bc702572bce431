//! Children that a parent's controllers have not made, and may clean up without anybody being asked.

use kausality_api::identity::{Hashes, UserHash};

use crate::{
    child::Child,
    class, managers,
    review::{Metadata, Request},
    summary::Summary,
};

/// Whether a child is known to have been adopted, and not to be the work of its parent's controllers. What workloads adopt for
/// its labels, they count.
pub(super) fn is_stray(request: &Request<'_>, child: &Child<'_>, parent: &Summary) -> bool {
    let (controllers, updaters) = (parent.controllers(), child.updaters());
    let is_theirs = |user: UserHash| {
        user == UserHash::UNRECORDED
            || controllers.contains(user)
            || user == UserHash::of(&request.user_info.username, &request.user_info.uid)
    };
    // Of more than fit, nobody knows who has been left out.
    let are_known = |users: &Hashes| !users.is_empty() && !users.is_full();
    let trace = child.trace().filter(|trace| !trace.hops().is_empty());
    let stored = request.old_object.as_ref().map(|stored| &stored.metadata);
    let is_adopted = |stored: &Metadata<'_>| {
        let owner = stored.owner.as_ref().filter(|owner| !class::is_workload(owner));
        owner.is_some_and(|owner| managers::is_adopted(stored, &owner.uid))
    };
    stored.is_some_and(is_adopted)
        && are_known(&controllers)
        && are_known(&updaters)
        && !updaters.iter().any(is_theirs)
        && trace.is_some_and(|trace| !trace.hops().iter().any(|hop| is_theirs(UserHash::of(&hop.user, ""))))
}
