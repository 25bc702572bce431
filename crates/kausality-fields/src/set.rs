//! Sets of fields: what somebody owns of an object.

use crate::path::{Path, Step};
use std::cmp::Ordering;
use std::fmt;

/// A set of [`Path`]s, kept as a tree.
///
/// A path may be a member without what lies below it, and the other way round: who owns `spec.replicas` need not own
/// `spec`. The root is never a member, since nobody owns a whole object.
///
/// ```
/// use kausality_fields::FieldSet;
///
/// let set = FieldSet::from_fields_v1(r#"{"f:spec":{"f:ports":{"k:{\"port\":53,\"protocol\":\"UDP\"}":{".":{},"f:nodePort":{}}}}}"#)?;
/// assert_eq!(set.to_string(), "spec.ports[port=53,protocol=UDP]\nspec.ports[port=53,protocol=UDP].nodePort");
/// # Ok::<(), kausality_fields::FieldsV1Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by step, without repetition. Every node is a member or has something below it.
    nodes: Vec<Node>,
}

/// One step of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) step: Step,
    pub(crate) member: bool,
    pub(crate) below: FieldSet,
}

impl FieldSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// Adds a path. The root is not added.
    pub fn insert(&mut self, path: &Path) {
        let Some((last, way)) = path.steps().split_last() else { return };
        let mut set = self;
        for step in way {
            set = &mut set.node(step).below;
        }
        set.node(last).member = true;
    }

    /// The node of a step, which is made if there is none.
    fn node(&mut self, step: &Step) -> &mut Node {
        let at = self.nodes.binary_search_by(|node| node.step.cmp(step)).unwrap_or_else(|at| {
            self.nodes.insert(at, Node { step: step.clone(), member: false, below: Self::new() });
            at
        });
        &mut self.nodes[at]
    }

    /// Whether a path is a member.
    pub fn has(&self, path: &Path) -> bool {
        let Some((last, way)) = path.steps().split_last() else { return false };
        let mut set = self;
        for step in way {
            match set.below(step) {
                Some(below) => set = below,
                None => return false,
            }
        }
        set.has_step(last)
    }

    /// Whether the path of a single step is a member.
    pub(crate) fn has_step(&self, step: &Step) -> bool {
        self.find(step).is_some_and(|node| node.member)
    }

    /// What is below a step, if anything is.
    pub fn below(&self, step: &Step) -> Option<&Self> {
        self.find(step).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    fn find(&self, step: &Step) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.step.cmp(step)).ok()?;
        self.nodes.get(at)
    }

    /// Whether nothing is a member.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.below.len()).sum()
    }

    /// What is in either.
    pub fn union(&self, other: &Self) -> Self {
        self.zip(other, |pair| match pair {
            Pair::Left(node) | Pair::Right(node) => Some(node.clone()),
            Pair::Both(a, b) => a.with(a.member || b.member, a.below.union(&b.below)),
        })
    }

    /// What is in both.
    pub fn intersection(&self, other: &Self) -> Self {
        self.zip(other, |pair| match pair {
            Pair::Left(_) | Pair::Right(_) => None,
            Pair::Both(a, b) => a.with(a.member && b.member, a.below.intersection(&b.below)),
        })
    }

    /// What is in this set alone. What lies below a member of the other stays.
    pub fn difference(&self, other: &Self) -> Self {
        self.zip(other, |pair| match pair {
            Pair::Left(node) => Some(node.clone()),
            Pair::Right(_) => None,
            Pair::Both(a, b) => a.with(a.member && !b.member, a.below.difference(&b.below)),
        })
    }

    /// What is neither in the other set nor below one of its members.
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.zip(other, |pair| match pair {
            Pair::Left(node) => Some(node.clone()),
            Pair::Right(_) => None,
            Pair::Both(_, b) if b.member => None,
            Pair::Both(a, b) => a.with(a.member, a.below.recursive_difference(&b.below)),
        })
    }

    /// The members with no member below them.
    pub fn leaves(&self) -> Self {
        let leaf = |node: &Node| node.with(node.member && node.below.is_empty(), node.below.leaves());
        Self { nodes: self.nodes.iter().filter_map(leaf).collect() }
    }

    /// The same members, each at the end of the given path.
    pub fn with_prefix(self, prefix: &Path) -> Self {
        if self.is_empty() {
            return self;
        }
        prefix
            .steps()
            .iter()
            .rev()
            .fold(self, |below, step| Self { nodes: vec![Node { step: step.clone(), member: false, below }] })
    }

    /// What is below the given path, as seen from there.
    pub fn without_prefix(&self, prefix: &Path) -> Self {
        let mut set = self;
        for step in prefix.steps() {
            match set.below(step) {
                Some(below) => set = below,
                None => return Self::new(),
            }
        }
        set.clone()
    }

    /// The members, in the order of paths: each before what lies below it.
    pub fn iter(&self) -> Iter<'_> {
        Iter { way: Vec::new(), left: vec![self.nodes.iter()] }
    }

    /// The first steps of what is in the set, in order.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.nodes.iter().map(|node| &node.step)
    }

    pub(crate) fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The set of these nodes, in any order. Nodes without members are left out. Of several with one step, the last to
    /// have something below it counts for that, as with the API server; to join them all would not be linear.
    pub(crate) fn of_nodes(mut nodes: Vec<Node>) -> Self {
        nodes.retain(|node| node.member || !node.below.is_empty());
        if !nodes.is_sorted_by(|a, b| a.step < b.step) {
            nodes.sort_by(|a, b| a.step.cmp(&b.step));
            nodes.dedup_by(|again, node| {
                let same = again.step == node.step;
                if same {
                    node.member |= again.member;
                    if !again.below.is_empty() {
                        node.below = std::mem::take(&mut again.below);
                    }
                }
                same
            });
        }
        Self { nodes }
    }

    fn zip<'a>(&'a self, other: &'a Self, keep: impl Fn(Pair<'a>) -> Option<Node>) -> Self {
        let (mut a, mut b) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        let mut nodes = Vec::new();
        loop {
            let order = match (a.peek(), b.peek()) {
                (Some(a), Some(b)) => a.step.cmp(&b.step),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Self { nodes },
            };
            let left = if order.is_le() { a.next() } else { None };
            let right = if order.is_ge() { b.next() } else { None };
            nodes.extend(match (left, right) {
                (Some(a), Some(b)) => keep(Pair::Both(a, b)),
                (Some(a), None) => keep(Pair::Left(a)),
                (None, Some(b)) => keep(Pair::Right(b)),
                (None, None) => None,
            });
        }
    }
}

/// What two sets have at one step.
enum Pair<'a> {
    Left(&'a Node),
    Right(&'a Node),
    Both(&'a Node, &'a Node),
}

impl Node {
    /// The same step with other members, unless there are none.
    fn with(&self, member: bool, below: FieldSet) -> Option<Self> {
        (member || !below.is_empty()).then(|| Self { step: self.step.clone(), member, below })
    }
}

/// The members of a [`FieldSet`] in order.
#[derive(Debug)]
pub struct Iter<'a> {
    way: Vec<&'a Step>,
    left: Vec<std::slice::Iter<'a, Node>>,
}

impl Iterator for Iter<'_> {
    type Item = Path;

    fn next(&mut self) -> Option<Path> {
        loop {
            let Some(node) = self.left.last_mut()?.next() else {
                self.left.pop();
                self.way.pop();
                continue;
            };
            self.way.push(&node.step);
            let path = node.member.then(|| self.way.iter().copied().cloned().collect());
            self.left.push(node.below.nodes.iter());
            if path.is_some() {
                return path;
            }
        }
    }
}

impl<'a> IntoIterator for &'a FieldSet {
    type Item = Path;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl FromIterator<Path> for FieldSet {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut set = Self::new();
        paths.into_iter().for_each(|path| set.insert(&path));
        set
    }
}

/// One path a line.
impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, path) in self.iter().enumerate() {
            write!(f, "{}{path}", if nth == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
