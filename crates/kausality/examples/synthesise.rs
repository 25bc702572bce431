//! Makes a long recording out of a short one: `synthesise LINES FILE` repeats FILE under other namespaces and
//! uids until there are LINES lines. Objects that FILE deletes are deleted in every copy.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let lines: usize = arguments.next().context("how many lines?")?.parse()?;
    let file = arguments.next().context("which file?")?;
    let recording = std::fs::read_to_string(&file).with_context(|| format!("reading {file}"))?;
    let mut out = BufWriter::new(io::stdout().lock());
    let copies = (0_u32..).flat_map(|copy| recording.lines().map(move |line| renamed(line, copy)));
    for line in copies.take(lines) {
        out.write_all(line.as_bytes())?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// A line under another namespace, with other uids.
fn renamed(line: &str, copy: u32) -> String {
    let mut renamed = line.replace("\"default\"", &format!("\"copy-{copy}\""));
    let ending = format!("{copy:08x}");
    let mut from = 0;
    while let Some(place) = renamed.get(from..).and_then(|rest| rest.find('-')).map(|offset| from + offset) {
        from = place + 1;
        // A uid is 8-4-4-4-12 hexadecimal digits; its last eight tell the copies apart.
        if place >= 8 && is_uid(renamed.as_bytes().get(place - 8..place + 28)) {
            renamed.replace_range(place + 20..place + 28, &ending);
            from = place + 28;
        }
    }
    renamed
}

fn is_uid(bytes: Option<&[u8]>) -> bool {
    bytes.is_some_and(|bytes| {
        bytes.iter().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    })
}
