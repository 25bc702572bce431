//! What the suite asks of composites, claims and their children.

use serde_json::json;

use super::kinds::Composition;
use super::shop::Shop;
use super::world::CROSSPLANE;
use crate::check::trace;
use crate::log::{Change, Log, Mark};

/// Changes the Compositions, and returns the changes that Crossplane made to children.
pub(super) async fn recomposed(
    shops: &mut [Shop<'_>],
    log: &mut Log,
    change: impl Fn(&mut Composition),
) -> Vec<Change> {
    let begun = log.mark();
    for shop in &mut *shops {
        change(&mut shop.composition);
        shop.recompose();
    }
    settled_since(shops, log, begun).await
}

/// Waits until all is done, and returns the changes that Crossplane made to children since a mark.
pub(super) async fn settled_since(shops: &[Shop<'_>], log: &mut Log, begun: Mark) -> Vec<Change> {
    settled(shops, log).await;
    let mut changes = changes_of_children(log, begun);
    changes.retain(|change| change.user == CROSSPLANE);
    changes
}

/// Waits until all is done, and has been for a while.
pub(super) async fn settled(shops: &[Shop<'_>], log: &mut Log) {
    for shop in shops {
        shop.is_done().await;
    }
    log.quiet().await;
}

/// The changes of managed resources since a mark.
pub(super) fn changes_of_children(log: &mut Log, begun: Mark) -> Vec<Change> {
    let mut changes = log.changes(begun);
    changes.retain(|change| change.resource == "objects");
    changes
}

/// The traces of a composite and of all its children begin with this person, and what the person changed.
pub(super) async fn all_begin_with(shop: &Shop<'_>, user: &str) {
    let (own, composite) = (shop.object().await, shop.composite().await);
    for object in shop.children().await.values().chain([&composite]) {
        let trace = trace(object);
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        assert_eq!(
            (&trace[0]["user"], &trace[0]["kind"]),
            (&json!(user), &own["kind"]),
            "{kind} {name}: {trace:#}"
        );
    }
}
