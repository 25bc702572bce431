//! What a pure crate may not use: the tables, and the reasons.

/// Why something is forbidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Clock,
    Environment,
    Randomness,
    /// A map that is hashed with a random key.
    RandomOrder,
    Io,
    Threads,
    Async,
    Cluster,
}

impl Kind {
    /// Finishes the sentence "this …".
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Clock => "reads a clock",
            Self::Environment => "reads the environment",
            Self::Randomness => "draws random numbers",
            Self::RandomOrder => "iterates in a random order",
            Self::Io => "does I/O",
            Self::Threads => "uses threads",
            Self::Async => "runs asynchronous code",
            Self::Cluster => "talks to a cluster",
        }
    }

    /// Finishes the sentence "this is forbidden, since …".
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Clock => "a decision must be the same whenever it is made, so that it can be replayed",
            Self::Environment => "a decision must be the same on every machine",
            Self::Randomness => "the same input must give the same decision",
            Self::RandomOrder => {
                "the same input must give the same bytes: patches, messages and hashes are compared"
            }
            Self::Io => "what can fail or wait belongs to a shell, so that every failure is a tested input",
            Self::Threads => "the caller decides what runs where, and results must not depend on scheduling",
            Self::Async => "the core must be usable without a runtime, and waiting belongs to a shell",
            Self::Cluster => "the core decides about facts that a shell fetched",
        }
    }

    /// What to do instead.
    pub(crate) fn instead(self) -> &'static str {
        match self {
            Self::Clock => "take the time as an input (a `jiff::Timestamp` argument)",
            Self::Environment => "take the setting as an input, read by the binary",
            Self::Randomness => "take the random value, or its seed, as an input",
            Self::RandomOrder => {
                "use BTreeMap or BTreeSet, or name a fixed hasher as the last type parameter"
            }
            Self::Io => "take the data as an input, and return what is to be written or said as an output",
            Self::Threads => "let the caller run it, and return the result",
            Self::Async => "take what was awaited as an input, and return what is to be done as an effect",
            Self::Cluster => "take the fact as an input, and return the write as an effect",
        }
    }
}

/// Packages by name; `*` at the end stands for any rest.
const PACKAGES: &[(&str, Kind)] = &[
    ("tokio", Kind::Async),
    ("tokio-*", Kind::Async),
    ("async-std", Kind::Async),
    ("async-io", Kind::Async),
    ("smol", Kind::Async),
    ("mio", Kind::Io),
    ("socket2", Kind::Io),
    ("hyper", Kind::Io),
    ("hyper-*", Kind::Io),
    ("reqwest", Kind::Io),
    ("ureq", Kind::Io),
    ("axum", Kind::Io),
    ("rustls", Kind::Io),
    ("rusqlite", Kind::Io),
    ("tempfile", Kind::Io),
    ("kube", Kind::Cluster),
    ("kube-*", Kind::Cluster),
    // Types alone, but hundreds of them, and the choice of their version is the binary's.
    ("k8s-openapi", Kind::Cluster),
    ("rand", Kind::Randomness),
    ("getrandom", Kind::Randomness),
    ("fastrand", Kind::Randomness),
];

/// Items by path, and all that is under them. `core` and `alloc` count as `std`.
const PATHS: &[(&str, Kind)] = &[
    ("std::time::SystemTime", Kind::Clock),
    ("std::time::Instant", Kind::Clock),
    ("std::time::UNIX_EPOCH", Kind::Clock),
    ("jiff::Timestamp::now", Kind::Clock),
    ("jiff::Zoned::now", Kind::Clock),
    ("chrono::Utc::now", Kind::Clock),
    ("chrono::Local", Kind::Clock),
    ("time::OffsetDateTime::now_utc", Kind::Clock),
    ("time::OffsetDateTime::now_local", Kind::Clock),
    ("uuid::Uuid::now_v1", Kind::Clock),
    ("uuid::Uuid::now_v6", Kind::Clock),
    ("uuid::Uuid::now_v7", Kind::Clock),
    ("std::env", Kind::Environment),
    ("std::backtrace", Kind::Environment),
    // The time zone of the machine, and the zone files on its disk.
    ("jiff::tz::TimeZone::system", Kind::Environment),
    ("jiff::tz::TimeZone::try_system", Kind::Environment),
    ("jiff::tz::TimeZone::get", Kind::Environment),
    ("jiff::tz::db", Kind::Environment),
    ("rand", Kind::Randomness),
    ("getrandom", Kind::Randomness),
    ("fastrand", Kind::Randomness),
    ("uuid::Uuid::new_v4", Kind::Randomness),
    ("std::hash::RandomState", Kind::Randomness),
    ("std::collections::hash_map::RandomState", Kind::Randomness),
    ("std::fs", Kind::Io),
    // Addresses are data; these are not.
    ("std::net::TcpStream", Kind::Io),
    ("std::net::TcpListener", Kind::Io),
    ("std::net::UdpSocket", Kind::Io),
    ("std::net::ToSocketAddrs", Kind::Io),
    ("std::os", Kind::Io),
    // `path.exists()` asks the file system without naming it.
    ("std::path", Kind::Io),
    ("std::process", Kind::Io),
    ("std::io::stdin", Kind::Io),
    ("std::io::stdout", Kind::Io),
    ("std::io::stderr", Kind::Io),
    ("std::io::Stdin", Kind::Io),
    ("std::io::Stdout", Kind::Io),
    ("std::io::Stderr", Kind::Io),
    ("std::io::IsTerminal", Kind::Io),
    ("std::io::pipe", Kind::Io),
    ("std::thread", Kind::Threads),
];

/// Macros of the standard library by name.
const MACROS: &[(&str, Kind)] = &[
    ("print", Kind::Io),
    ("println", Kind::Io),
    ("eprint", Kind::Io),
    ("eprintln", Kind::Io),
    ("dbg", Kind::Io),
    ("env", Kind::Environment),
    ("option_env", Kind::Environment),
];

/// The variables that cargo sets from the manifest: the same for every build of one source.
const CONSTANT_VARIABLES: &[&str] = &["CARGO_PKG_NAME", "CARGO_PKG_VERSION"];

/// Collections with a random hasher, unless the type parameter at this place names another one.
const HASHED: &[(&str, usize)] = &[
    ("std::collections::HashMap", 3),
    ("std::collections::hash_map::HashMap", 3),
    ("std::collections::HashSet", 2),
    ("std::collections::hash_set::HashSet", 2),
];

/// The constructors that take a hasher.
const WITH_HASHER: &[&str] = &["with_hasher", "with_capacity_and_hasher"];

/// Why a package is forbidden.
pub(crate) fn package(name: &str) -> Option<Kind> {
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    };
    PACKAGES.iter().find(|(pattern, _)| matches(pattern)).map(|(_, kind)| *kind)
}

/// Why an item is forbidden, given its full path.
pub(crate) fn item(path: &[String]) -> Option<Kind> {
    PATHS.iter().find(|(entry, _)| rest(path, entry).is_some()).map(|(_, kind)| *kind)
}

/// Why a macro is forbidden, given its name and, for `env!`, the variable.
pub(crate) fn macro_call(name: &str, variable: Option<&str>) -> Option<Kind> {
    let kind = MACROS.iter().find(|(entry, _)| *entry == name).map(|(_, kind)| *kind)?;
    let constant =
        kind == Kind::Environment && variable.is_some_and(|name| CONSTANT_VARIABLES.contains(&name));
    (!constant).then_some(kind)
}

/// Why a use of a hashed collection is forbidden. `parameters` are the numbers of type parameters that were
/// written at each of the last segments of the path.
pub(crate) fn collection(path: &[String], parameters: &[usize]) -> Option<Kind> {
    let (rest, needed) = HASHED.iter().find_map(|(entry, needed)| Some((rest(path, entry)?, *needed)))?;
    let written = parameters.iter().rev().nth(rest.len()).copied().unwrap_or(0);
    let chosen = rest.first().is_some_and(|method| WITH_HASHER.contains(&method.as_str()));
    (written < needed && !chosen).then_some(Kind::RandomOrder)
}

/// What follows `entry` in a path that starts with it.
fn rest<'a>(path: &'a [String], entry: &str) -> Option<&'a [String]> {
    let mut path = path;
    for segment in entry.split("::") {
        path = path.split_first().filter(|(first, _)| *first == segment)?.1;
    }
    Some(path)
}
