//! The shared libraries of a binary.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// The paths of all shared libraries that a binary needs, and of its loader. A static binary has none.
///
/// `ldd` asks the loader itself, so these are the files that run with the binary on this machine.
pub(super) fn of(binary: &Path) -> Result<Vec<String>> {
    ensure!(binary.is_file(), "there is no file {}", binary.display());
    // A name without a slash would be looked for in the PATH.
    let path = std::path::absolute(binary).context("finding the working directory")?;
    let output = Command::new("ldd")
        .arg(&path)
        .env("LC_ALL", "C")
        .output()
        .context("starting ldd, which is part of the C library")?;
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if complained.contains("not a dynamic executable") {
        return Ok(Vec::new());
    }
    ensure!(output.status.success(), "ldd {} failed: {said}{complained}", path.display());
    parse(&said).with_context(|| format!("finding the libraries of {}", path.display()))
}

/// Reads lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`.
fn parse(said: &str) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for line in said.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "statically linked") {
        let (name, found) = line.split_once(" => ").unwrap_or((line, line));
        if found.starts_with("not found") {
            bail!("{name} is missing on this machine: install the package that has it");
        }
        let path = found.rsplit_once(" (").map_or(found, |(path, _)| path);
        // The kernel provides linux-vdso.so.1, which is no file.
        if path.starts_with('/') {
            paths.push(path.to_owned());
        }
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_taken_and_what_the_kernel_provides_is_not() {
        let said = "\tlinux-vdso.so.1 (0x00007ffd4a7f2000)\n\
                    \tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f0c5a600000)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f0c5a41f000)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f0c5c5d8000)\n";
        let paths = parse(said).unwrap();
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib/x86_64-linux-gnu/libgcc_s.so.1",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_static_binary_has_none() {
        assert_eq!(parse("\tstatically linked\n").unwrap(), [""; 0]);
    }

    #[test]
    fn a_missing_library_is_named() {
        let error = parse("\tlibssl.so.3 => not found\n").unwrap_err();
        assert!(error.to_string().starts_with("libssl.so.3 is missing"), "{error}");
    }

    #[test]
    fn what_is_no_program_is_an_error_or_has_no_libraries() {
        let error = of(Path::new("/nonexistent/kausality")).unwrap_err();
        assert_eq!(error.to_string(), "there is no file /nonexistent/kausality");
    }
}
