//! What can be wrong with an expression, and what can go wrong when it is evaluated.

use std::fmt;

use cel::ExecutionError;

/// What is wrong with a source, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// What is wrong, in one line.
    pub message: String,
    /// The line itself.
    text: String,
}

/// The most characters of a line that are shown before and after the fault.
const SHOWN: usize = 160;

impl Fault {
    /// At a byte of the source.
    pub(crate) fn at(source: &str, offset: usize, message: String) -> Self {
        let before = source.get(..offset).unwrap_or_default();
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().map_or(0, |text| text.chars().count());
        Self::on(source, line, column, message)
    }

    /// At a line and a column, both from 0.
    pub(crate) fn on(source: &str, line: usize, column: usize, message: String) -> Self {
        let text = source.split('\n').nth(line).unwrap_or_default();
        let number = |at: usize| u32::try_from(at.saturating_add(1)).unwrap_or(u32::MAX);
        Self { line: number(line), column: number(column), message, text: text.to_owned() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, message, text } = self;
        write!(f, "{line}:{column}: {message}")?;
        // A line may be as long as the source: what is around the fault is enough.
        let column = (*column as usize).saturating_sub(1);
        let hidden = column.saturating_sub(SHOWN);
        let shown: String = text.trim_end_matches('\r').chars().skip(hidden).take(2 * SHOWN).collect();
        write!(f, "\n | {shown}\n | {}^", ".".repeat(column - hidden))
    }
}

impl std::error::Error for Fault {}

/// Why it cannot be told whether an expression holds, in one line.
///
/// It names keys and types, and no values: what is evaluated may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

/// The longest message.
const LONGEST: usize = 300;

impl Failure {
    pub(crate) fn new(message: &str) -> Self {
        let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(LONGEST) {
            None => Self(line),
            Some((end, _)) => Self(format!("{}…", line.get(..end).unwrap_or_default())),
        }
    }

    /// An evaluation that was stopped.
    pub(crate) fn too_expensive() -> Self {
        Self("operation cancelled: actual cost limit exceeded".to_owned())
    }
}

impl From<ExecutionError> for Failure {
    fn from(error: ExecutionError) -> Self {
        use ExecutionError as E;
        match error {
            E::NoSuchKey(key) => Self::new(&format!("no such key: {key}")),
            E::UnsupportedBinaryOperator(operator, one, two) => {
                Self::new(&format!("no such overload: {operator}({}, {})", one.type_of(), two.type_of()))
            }
            E::ValuesNotComparable(one, two) => {
                Self::new(&format!("a {} and a {} have no order", one.type_of(), two.type_of()))
            }
            E::UnsupportedKeyType(key) => Self::new(&format!("a {} cannot be a key", key.type_of())),
            E::UnsupportedIndex(key, of) => {
                Self::new(&format!("a {} is no index of a {}", key.type_of(), of.type_of()))
            }
            E::UnsupportedTargetType { target } | E::NotSupportedAsMethod { target, .. } => {
                Self::new(&format!("no such overload for a {}", target.type_of()))
            }
            E::DivisionByZero(_) => Self::new("division by zero"),
            E::RemainderByZero(_) => Self::new("modulus by zero"),
            E::Overflow(..) => Self::new("integer overflow"),
            E::IndexOutOfBounds(_) => Self::new("index out of bounds"),
            E::DuplicateKey(_) => Self::new("the same key twice in a map"),
            other => Self::new(&other.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}
