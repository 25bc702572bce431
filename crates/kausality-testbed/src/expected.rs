//! Checks that are known to fail.

use std::future::Future;

use anyhow::{Result, bail};

use crate::aloud::aloud;

/// Runs a check that is known to fail, and says so loudly. An error if the check passes: then remove the mark.
///
/// `why` names what is broken, and the issue. The check returns the expected symptom as its error; a panic inside it
/// still fails the test. Mark only what is known to fail, not the whole test.
///
/// ```
/// # use kausality_testbed::expected_to_fail;
/// # async fn test() -> anyhow::Result<()> {
/// let (sum, expected) = (3, 4);
/// expected_to_fail("sums are off by one: issue 7", async {
///     if sum == expected { Ok(()) } else { Err(format!("{sum} instead of {expected}")) }
/// })
/// .await
/// # }
/// ```
pub async fn expected_to_fail(why: &str, check: impl Future<Output = Result<(), String>>) -> Result<()> {
    aloud("EXPECTED FAILURE in", &judge(why, check.await)?)
}

/// What to say. An error if the check passed.
fn judge(why: &str, outcome: Result<(), String>) -> Result<String> {
    match outcome {
        Err(symptom) => Ok(format!("{symptom}. Known: {why}")),
        Ok(()) => bail!("mended: remove the mark `expected_to_fail`. It said: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_symptom_passes_and_is_told() {
        assert_eq!(judge("issue 7", Err("3 writes".to_owned())).unwrap(), "3 writes. Known: issue 7");
    }

    #[tokio::test]
    async fn what_is_mended_fails_and_says_what_to_do() {
        let error = expected_to_fail("issue 7", async { Ok(()) }).await.unwrap_err().to_string();
        assert_eq!(error, "mended: remove the mark `expected_to_fail`. It said: issue 7");
    }

    #[tokio::test]
    #[should_panic(expected = "something else")]
    async fn any_other_failure_is_one() {
        let _ = expected_to_fail("why", async { panic!("something else") }).await;
    }
}
