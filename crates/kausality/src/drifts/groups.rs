//! Causes as lines of a table.

use jiff::Timestamp;
use kausality_api::{drift::cause::Cause, text::shorten};

use crate::{
    live::age_of,
    output::{Cell, Table},
};

/// Characters of a list of names, where there is little room.
const MAX_LIST: usize = 60;

pub(super) fn table(causes: &[Cause], wide: bool, now: Timestamp) -> Table {
    let max = if wide { usize::MAX } else { MAX_LIST };
    let list = |names: Vec<String>| Cell::new(&shorten(&names.join(", "), max));
    let mut table =
        Table::new(vec!["ACTOR", "DRIFTS", "OPEN", "PARENTS", "CHILDREN", "CHANGES", "SINCE", "LAST"]);
    for cause in causes {
        let parents = match cause.parents.len() {
            number if number > 1 && !wide => vec![number.to_string()],
            _ => cause.parents.iter().cloned().collect(),
        };
        let kinds = cause.kinds.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
        let fields = cause.fields.iter().map(|field| field.path.clone()).collect::<Vec<String>>();
        let fields = if fields.is_empty() { vec!["various".to_owned()] } else { fields };
        table.push(vec![
            Cell::new(&cause.actor),
            cause.count.to_string().into(),
            cause.open.to_string().into(),
            list(parents),
            list(kinds),
            list(fields),
            age_of(cause.first_seen, now).into(),
            age_of(cause.last_seen, now).into(),
        ]);
    }
    table
}
