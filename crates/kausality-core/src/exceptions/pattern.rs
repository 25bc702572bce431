//! Names with `*` in them.

/// A name, or what many names look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(String);

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The one name that it means.
    pub(crate) fn exact(&self) -> Option<&str> {
        (!self.0.contains('*')).then_some(self.0.as_str())
    }

    /// Whether a name looks like that. `*` stands for any number of letters, none among them.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, yes, no) in [
            ("web", vec!["web"], vec!["web-1", "we", ""]),
            ("*", vec!["", "web"], vec![]),
            ("web-*", vec!["web-", "web-1"], vec!["web", "a-web-1"]),
            ("*-db", vec!["a-db", "-db"], vec!["db", "a-db-1"]),
            ("a*b*c", vec!["abc", "a-b-b-c"], vec!["acb", "abcd", "ac"]),
            ("apps/*", vec!["apps/v1"], vec!["batch/v1"]),
            ("a*a", vec!["aa", "aba"], vec!["a"]),
            ("", vec![""], vec!["a"]),
        ] {
            let found = Pattern::new(pattern);
            yes.iter().for_each(|name| assert!(found.matches(name), "{pattern} {name}"));
            no.iter().for_each(|name| assert!(!found.matches(name), "{pattern} {name}"));
        }
        assert_eq!(Pattern::new("web").exact(), Some("web"));
        assert_eq!(Pattern::new("web-*").exact(), None);
    }
}
