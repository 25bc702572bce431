//! Label selectors as kubectl takes them: `a=b,c!=d,e in (f,g),h,!i`.

use super::{Operator, Requirement};

/// Reads what is asked of labels. No words ask for nothing.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let parts = parts(text)?;
    if let [only] = parts.as_slice()
        && only.trim().is_empty()
    {
        return Ok(Vec::new());
    }
    parts.into_iter().map(|part| requirement(part.trim())).collect()
}

/// Cuts at commas, but not at those in brackets.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut inside) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' if !inside => inside = true,
            ')' if inside => inside = false,
            '(' | ')' => return Err(format!("brackets do not fit in {text:?}")),
            ',' if !inside => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err(format!("brackets do not fit in {text:?}"));
    }
    parts.extend(text.get(start..));
    Ok(parts)
}

fn requirement(part: &str) -> Result<Requirement, String> {
    let asked = |key: &str, operator, values: Vec<&str>| Requirement {
        key: key.trim().to_owned(),
        operator,
        values: values.into_iter().map(|value| value.trim().to_owned()).collect(),
    };
    if let Some((key, value)) = part.split_once("!=") {
        return Ok(asked(key, Operator::NotIn, vec![value]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(asked(key, Operator::In, vec![value]));
    }
    if let Some(key) = part.strip_prefix('!') {
        return Ok(asked(key, Operator::DoesNotExist, Vec::new()));
    }
    let Some((head, set)) = part.split_once('(') else {
        return Ok(asked(part, Operator::Exists, Vec::new()));
    };
    let values = set.strip_suffix(')').map(|set| set.split(',').collect());
    let operator = match head.split_whitespace().collect::<Vec<_>>().as_slice() {
        [key, "in"] => Some((*key, Operator::In)),
        [key, "notin"] => Some((*key, Operator::NotIn)),
        _ => None,
    };
    match (operator, values) {
        (Some((key, operator)), Some(values)) => Ok(asked(key, operator, values)),
        _ => Err(format!(
            "{part:?} asks nothing of a label: say KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY or !KEY"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LabelSelector, Labels};

    #[test]
    fn words_select_as_kubectl_does() {
        let labels = [("app", "web"), ("tier", "front"), ("empty", ""), ("a.b/c", "d")];
        let labels: Labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        for (text, expected) in [
            ("", true),
            ("app=web,tier==front", true),
            ("app = web , tier", true),
            ("app=web,tier=back", false),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (web,api),!gone", true),
            ("app in(web)", true),
            ("app notin (web, api)", false),
            ("!tier", false),
            ("empty=", true),
            ("empty in (,a)", true),
            ("a.b/c=d", true),
        ] {
            assert_eq!(LabelSelector::parse(text).map(|it| it.matches(&labels)), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for text in [
            ",",
            "a=b,",
            "a=b=c",
            "a b",
            "a in (b",
            "a in b",
            "a>1",
            "!a=b",
            "=b",
            "a=(b)",
            "(a)",
            "a in (b))",
            "!!a",
        ] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
        let told = LabelSelector::parse("a=b=c").unwrap_err();
        assert_eq!(told, "\"b=c\" is no value of a label");
    }
}
