//! What is recorded on a parent of rules that do not hold for ever: which child each has let pass, and at which
//! generation of the parent.

use kausality_api::{annotation::EXCEPTED, approval::ApprovalMode};
use serde::{Deserialize, Serialize};

use super::{Exceptions, Ruled, rule::Rule};
use crate::summary::{ObjectId, Summary};

/// How many uses are recorded on one parent. Once they are, and all of rules that there still are, such rules let nothing
/// new pass there.
const MAX_USES: usize = 256;

/// One use of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Use {
    rule: String,
    child: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
}

impl Use {
    /// Whether it is of a rule that there is.
    fn is_of(&self, all: &Exceptions) -> bool {
        all.marks.contains(&self.rule)
    }
}

fn child(id: &ObjectId) -> String {
    format!("{}/{}/{}/{}", id.api_version, id.kind, id.namespace, id.name)
}

/// What is recorded; `None`: it cannot be understood.
fn read(parent: &Summary) -> Option<Vec<Use>> {
    parent.annotation(EXCEPTED).map_or(Some(Vec::new()), |text| serde_json::from_str(text).ok())
}

/// Why a rule, which is one of `all`, does not let this child pass (any more).
pub(super) fn over(rule: &Rule, all: &Exceptions, id: &ObjectId, parent: &Summary) -> Option<String> {
    if rule.mode == ApprovalMode::Always {
        return None;
    }
    let Some(uses) = read(parent) else {
        return Some(format!("{EXCEPTED} on the parent cannot be understood"));
    };
    let child = child(id);
    match uses.iter().find(|used| used.rule == rule.mark() && used.child == child) {
        Some(_) if rule.mode == ApprovalMode::Once => Some("it let this child pass once".to_owned()),
        Some(used) if used.generation != parent.generation => {
            Some("the parent has changed since it first let this child pass".to_owned())
        }
        Some(_) => None,
        None if uses.len() >= MAX_USES && uses.iter().all(|used| used.is_of(all)) => {
            Some(format!("{MAX_USES} uses are recorded on the parent, and no more is"))
        }
        None => None,
    }
}

/// The record with this use in it, if it has to be recorded. A full one lets go of rules that are no more; not before, since
/// a rule that is not known here may only be new.
pub(crate) fn used(ruled: &Ruled, all: &Exceptions, id: &ObjectId, parent: &Summary) -> Option<String> {
    if ruled.mode == ApprovalMode::Always {
        return None;
    }
    let mut uses = read(parent)?;
    let this = Use { rule: ruled.mark.clone(), child: child(id), generation: parent.generation };
    if uses.iter().any(|used| used.rule == this.rule && used.child == this.child) {
        return None;
    }
    if uses.len() >= MAX_USES {
        uses.retain(|used| used.is_of(all));
    }
    uses.push(this);
    serde_json::to_string(&uses).ok()
}

/// The record, carried over a change of annotations that bumps the generation.
pub(crate) fn restamp(text: &str, from: i64, to: i64) -> Option<String> {
    let mut uses: Vec<Use> = serde_json::from_str(text).ok()?;
    uses.iter_mut().filter(|used| used.generation == Some(from)).for_each(|used| used.generation = Some(to));
    serde_json::to_string(&uses).ok()
}

#[cfg(test)]
mod tests;
