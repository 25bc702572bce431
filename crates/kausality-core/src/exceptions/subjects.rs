//! Whom a rule is about.

use std::collections::BTreeSet;

use kausality_api::exception::{Subject, SubjectKind};

use super::pattern::Pattern;
use crate::review::UserInfo;

/// What rules are found by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Those that do not name one user or group.
    Anybody,
    User(String),
    Group(String),
}

/// Whom a rule is about.
#[derive(Clone, Debug)]
pub(crate) struct Subjects {
    among: Vec<Who>,
    except: Vec<Who>,
}

#[derive(Clone, Debug)]
enum Who {
    User(Pattern),
    Group(String),
}

impl Subjects {
    /// `home` is the namespace of service accounts that do not name theirs.
    pub(crate) fn new(among: &[Subject], except: &[Subject], home: &str) -> Self {
        let who = |subjects: &[Subject]| subjects.iter().map(|subject| Who::new(subject, home)).collect();
        Self { among: who(among), except: who(except) }
    }

    pub(crate) fn keys(&self) -> BTreeSet<Key> {
        self.among.iter().map(Who::key).collect()
    }

    pub(crate) fn include(&self, user: &UserInfo<'_>) -> bool {
        self.among.iter().any(|who| who.is(user)) && !self.except.iter().any(|who| who.is(user))
    }
}

impl Who {
    fn new(subject: &Subject, home: &str) -> Self {
        match subject.kind {
            SubjectKind::User => Self::User(Pattern::new(&subject.name)),
            SubjectKind::Group => Self::Group(subject.name.clone()),
            SubjectKind::ServiceAccount => {
                let namespace = subject.namespace.as_deref().unwrap_or(home);
                Self::User(Pattern::new(&format!("system:serviceaccount:{namespace}:{}", subject.name)))
            }
        }
    }

    fn key(&self) -> Key {
        match self {
            Self::User(name) => name.exact().map_or(Key::Anybody, |name| Key::User(name.to_owned())),
            Self::Group(name) => Key::Group(name.clone()),
        }
    }

    fn is(&self, user: &UserInfo<'_>) -> bool {
        match self {
            Self::User(name) => name.matches(&user.username),
            Self::Group(name) => user.is_in(name),
        }
    }
}
