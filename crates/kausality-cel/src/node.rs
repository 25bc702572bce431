//! What is evaluated: the tree of the parser, with names resolved and macros told apart.

use cel::IdedExpr;
use cel::common::types::CelString;
use cel::common::value::Val;

use crate::library::regex::Pattern;

/// A part of an expression.
#[derive(Debug)]
pub(crate) enum Node {
    Constant(Box<dyn Val>),
    /// One of the environment.
    Variable(&'static str),
    /// One of a loop: so many further out.
    Local(usize),
    Select {
        of: Box<Node>,
        field: CelString<'static>,
        /// `a.?b`
        optional: bool,
    },
    Has {
        of: Box<Node>,
        field: CelString<'static>,
    },
    Index {
        of: Box<Node>,
        at: Box<Node>,
        /// `a[?b]`
        optional: bool,
    },
    Not(Box<Node>),
    Negate(Box<Node>),
    Binary(Operator, Box<[Node; 2]>),
    Conditional(Box<[Node; 3]>),
    /// Items, and whether each is an optional that may be left out.
    List(Vec<(Node, bool)>),
    Map(Vec<Entry>),
    /// A value for the innermost name of the other.
    Bind(Box<[Node; 2]>),
    Loop(Box<Loop>),
    Call(Box<Call>),
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operator {
    And,
    Or,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// What is done for every item of a list, or for every key of a map.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) range: Node,
    /// Whether there are two names: the index and the item, or the key and the value.
    pub(crate) paired: bool,
    pub(crate) each: Each,
}

#[derive(Debug)]
pub(crate) enum Each {
    All(Node),
    Exists(Node),
    ExistsOne(Node),
    /// Items of a list.
    Collect {
        when: Option<Node>,
        item: Node,
    },
    /// Values of a map, by the keys of the range.
    Insert {
        when: Option<Node>,
        value: Node,
    },
    /// Entries of maps become those of one.
    Merge {
        when: Option<Node>,
        entries: Node,
    },
}

/// A function.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The target first.
    pub(crate) arguments: Vec<Node>,
    /// The pattern among them, if it is known.
    pub(crate) pattern: Option<Pattern>,
    pub(crate) how: How,
}

#[derive(Debug)]
pub(crate) enum How {
    /// Known here, since it can be done without copies, or only as far as it is needed.
    Own(Own),
    Global,
    /// Of a target: the call as `cel` wants it, of [`argument`]s.
    Member(Box<IdedExpr>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Own {
    Size,
    StartsWith,
    EndsWith,
    Contains,
    Matches,
    Find,
    FindAll,
    HasValue,
    Value,
    Or,
    OrValue,
}

impl Own {
    /// The function of a name with so many arguments, its target included.
    pub(crate) fn of(name: &str, member: bool, arguments: usize) -> Option<Self> {
        match (name, member, arguments) {
            ("size", _, 1) => Some(Self::Size),
            ("startsWith", true, 2) => Some(Self::StartsWith),
            ("endsWith", true, 2) => Some(Self::EndsWith),
            ("contains", true, 2) => Some(Self::Contains),
            ("matches", _, 2) => Some(Self::Matches),
            ("find", true, 2) => Some(Self::Find),
            ("findAll", true, 2 | 3) => Some(Self::FindAll),
            ("hasValue", true, 1) => Some(Self::HasValue),
            ("value", true, 1) => Some(Self::Value),
            ("or", true, 2) => Some(Self::Or),
            ("orValue", true, 2) => Some(Self::OrValue),
            _ => None,
        }
    }
}

/// The names of the arguments in a [`How::Member`].
const ARGUMENTS: [&str; 6] = ["@0", "@1", "@2", "@3", "@4", "@5"];

/// The name of an argument, of as many as a function can have.
pub(crate) fn argument(nth: usize) -> Option<&'static str> {
    ARGUMENTS.get(nth).copied()
}
