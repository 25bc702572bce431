//! Asking before much is done at once.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Result, bail};

use crate::output::count;

/// How many of the deeds are listed.
const SHOWN: usize = 50;

/// Whether all of this is to be done. One deed is what was asked for; several are listed first.
///
/// # Errors
/// If there is nobody to ask.
pub(crate) fn confirmed(deeds: &[String], yes: bool) -> Result<bool> {
    if yes || deeds.len() < 2 {
        return Ok(true);
    }
    let mut said = String::from("This would be done:\n");
    for deed in deeds.iter().take(SHOWN) {
        said += &format!("  {deed}\n");
    }
    if deeds.len() > SHOWN {
        said += &format!("  … and {} more\n", deeds.len() - SHOWN);
    }
    anstream::eprint!("{said}");
    if !std::io::stdin().is_terminal() {
        bail!("{} are more than one, and there is nobody to ask: say --yes", count(deeds.len(), "object"));
    }
    agreed("Do it?")
}

/// Asks a question, and whether the answer is yes.
pub(crate) fn agreed(question: &str) -> Result<bool> {
    anstream::eprint!("{question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
