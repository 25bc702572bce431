//! What expressions may name, and how large they may be.

use std::sync::{Arc, LazyLock};

use cel::Env;

use crate::types::Type;
use crate::{library, macros};

/// How much an expression may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest source, in bytes.
    pub source: usize,
    /// The most parts: names, values, operators and brackets.
    pub terms: usize,
    /// How deep parts may be within each other. A bracket or a conditional counts as three, since the parser needs that much
    /// more stack for it; each operator and each field that is picked counts as one.
    pub depth: usize,
    /// The most that an evaluation may do: about one for each part that is evaluated, and one for 16 bytes of text.
    pub cost: u64,
}

impl Limits {
    /// Of conditions of webhooks.
    const CONDITIONS: Self = Self { source: 16 << 10, terms: 6_000, depth: 192, cost: 400_000 };
    /// Of policies.
    const POLICIES: Self = Self { source: 4 << 10, terms: 2_000, depth: 128, cost: 200_000 };
}

/// What expressions may name, and of which type each is.
#[derive(Debug)]
pub struct Environment {
    variables: Vec<(&'static str, Type)>,
    limits: Limits,
}

static CONDITIONS: LazyLock<Environment> = LazyLock::new(|| {
    let variables = [("object", Type::Dyn), ("oldObject", Type::Dyn), ("request", Type::REQUEST)];
    Environment::new(&variables).within(Limits::CONDITIONS)
});

static POLICIES: LazyLock<Environment> = LazyLock::new(|| {
    Environment::new(&[
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        ("request", Type::REQUEST),
        ("parent", Type::Dyn),
        ("user", Type::USER),
        ("namespaceObject", Type::Dyn),
    ])
});

impl Environment {
    /// Knows these variables, within the limits of policies.
    #[must_use]
    pub fn new(variables: &[(&'static str, Type)]) -> Self {
        Self { variables: variables.to_vec(), limits: Limits::POLICIES }
    }

    /// With other limits. Whoever allows deeper expressions must see to the stack of those who evaluate them.
    #[must_use]
    pub fn within(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Of `matchConditions` of webhooks: `object`, `oldObject` and `request`.
    #[must_use]
    pub fn conditions() -> &'static Self {
        &CONDITIONS
    }

    /// Of policies: `object`, `oldObject`, `request`, `parent`, `user` and `namespaceObject`.
    #[must_use]
    pub fn policies() -> &'static Self {
        &POLICIES
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The type of a variable, and its name for as long as the program runs.
    pub(crate) fn variable(&self, name: &str) -> Option<(&'static str, &Type)> {
        self.variables.iter().find(|(known, _)| *known == name).map(|(name, found)| (*name, found))
    }
}

/// The functions, types and macros that there are, whatever the variables.
static FUNCTIONS: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut functions = Env::stdlib();
    // As an API server has it: the last one counts.
    functions.set_error_on_duplicate_map_keys(false);
    // None of these can be there already, which a test sees to.
    _ = functions.add_extension(library::register);
    _ = functions.add_extension(macros::register);
    Arc::new(functions)
});

pub(crate) fn functions() -> &'static Arc<Env> {
    &FUNCTIONS
}
