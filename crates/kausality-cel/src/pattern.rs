//! Regular expressions beside CEL, with the same syntax and the same bounds.

use crate::{
    budget,
    library::regex::{MAX_STEPS, MAX_WRITTEN, Pattern},
};

/// A pattern for the whole of a text.
#[derive(Debug)]
pub struct WholeText(Pattern);

impl WholeText {
    /// Compiles a pattern in Go's syntax.
    ///
    /// # Errors
    /// If it is none, or too large: in words for who wrote it.
    pub fn compile(source: &str) -> Result<Self, String> {
        // By itself first, so that a bracket too many does not end the group around it.
        let compile =
            |source: &str| Pattern::compile(source, MAX_WRITTEN).map_err(|refused| refused.to_string());
        compile(source)?;
        compile(&format!(r"\A(?:{source})\z")).map(Self)
    }

    /// The memory that it takes, at most.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.kept()
    }

    /// What it costs to hold it against a text, in the measure of expressions.
    #[must_use]
    pub fn cost(&self, text: &str) -> u64 {
        // What would take more is not searched step by step.
        self.0.steps(text).min(MAX_STEPS as u64) / budget::STEPS + budget::text(text.len())
    }

    /// Whether it matches.
    ///
    /// # Errors
    /// If it would take too long to tell.
    pub fn is_match(&self, text: &str) -> Result<bool, String> {
        self.0.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_for_the_whole_text_in_gos_syntax() {
        let pattern = WholeText::compile(r#"{"data":{"version":".*"}}"#).unwrap();
        assert_eq!(pattern.is_match(r#"{"data":{"version":"1.2"}}"#), Ok(true));
        assert_eq!(pattern.is_match(r#"{"data":{"version":"1.2"},"more":1}"#), Ok(false));
        assert_eq!(WholeText::compile("a|b").unwrap().is_match("ab"), Ok(false));
        for wrong in ["a)(b", "a**", "(?x)a", "["] {
            let fault = WholeText::compile(wrong).unwrap_err();
            assert!(!fault.contains(r"\z"), "{fault}");
        }
    }

    #[test]
    fn what_takes_too_long_is_not_searched() {
        let text: String = (0..900_000_u32)
            .map(|nth| if nth.wrapping_mul(2_654_435_761) >> 31 == 0 { 'a' } else { 'b' })
            .collect();
        let pattern = WholeText::compile(r"(?s).*[ab]*a[ab]{1000}c.*").unwrap();
        assert!(pattern.is_match(&text).is_err());
        assert_eq!(WholeText::compile("[ab]*").unwrap().is_match(&text), Ok(true));
    }
}
