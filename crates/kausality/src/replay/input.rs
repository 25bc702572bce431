//! Finds the JSON documents in a recording, packed or not: one a line, printed over several lines, or in a list.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use flate2::read::MultiGzDecoder;

/// The largest document that is read. The API server itself takes no more than a few megabytes.
const MAX_DOCUMENT: usize = 64 << 20;

/// What some editors put at the beginning of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

const ENDINGS: [&str; 4] = ["json", "jsonl", "ndjson", "log"];

/// A file of a recording, or standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// `-`.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl Input {
    /// The inputs that arguments name: `-` is standard input, a folder stands for the recordings in it, in the
    /// order of their names.
    ///
    /// # Errors
    /// If something does not exist, or a folder holds no recording.
    pub fn all(arguments: &[PathBuf]) -> Result<Vec<Self>> {
        let mut inputs = Vec::new();
        for path in arguments {
            if path.as_os_str() == "-" {
                inputs.push(Self::Stdin);
            } else if path.is_dir() {
                inputs.extend(folder(path)?.into_iter().map(Self::File));
            } else if path.exists() {
                inputs.push(Self::File(path.clone()));
            } else {
                bail!("{} does not exist", path.display());
            }
        }
        Ok(inputs)
    }

    /// What it is called in outputs.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "-".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// How many bytes it has, if that is known.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Stdin => None,
            // How much it unpacks to is not known before.
            Self::File(path) if is_gzip(path).unwrap_or_default() => None,
            Self::File(path) => path.metadata().ok().map(|metadata| metadata.len()),
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(&self) -> Result<Documents<Box<dyn BufRead>>> {
        let reader: Box<dyn Read> = match self {
            Self::Stdin => Box::new(io::stdin()),
            Self::File(path) => {
                let context = || format!("cannot open {}", path.display());
                let file = File::open(path).with_context(context)?;
                if is_gzip(path).with_context(context)? {
                    Box::new(MultiGzDecoder::new(file))
                } else {
                    Box::new(file)
                }
            }
        };
        Ok(Documents::new(Box::new(BufReader::with_capacity(1 << 16, reader))))
    }
}

/// Whether a file is packed, as log rotation leaves it.
fn is_gzip(path: &Path) -> io::Result<bool> {
    let mut magic = Vec::new();
    File::open(path)?.take(2).read_to_end(&mut magic)?;
    Ok(magic == [0x1f, 0x8b])
}

fn folder(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = path.read_dir().with_context(|| format!("cannot list {}", path.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry?.path();
        let unpacked = if file.extension().is_some_and(|it| it == "gz") {
            file.with_extension("")
        } else {
            file.clone()
        };
        let known = unpacked.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
        if known && file.is_file() {
            files.push(file);
        }
    }
    if files.is_empty() {
        bail!(
            "{} holds no recording (files ending in .{}, or in one of these and .gz)",
            path.display(),
            ENDINGS.join(", .")
        );
    }
    files.sort();
    Ok(files)
}

/// A document, with the line on which it starts. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Where it starts.
    pub line: u64,
    /// What it is, complete or not; or why it was passed over.
    pub bytes: Result<Vec<u8>, String>,
}

/// The documents of a recording, found by their brackets alone.
///
/// A line that starts with a bracket at its very beginning starts a new document, whatever came before: so one
/// that was cut off in the middle of a line costs no other.
#[derive(Debug)]
pub struct Documents<R> {
    reader: R,
    line: u64,
    read: u64,
    pending: Option<Vec<u8>>,
}

impl<R: BufRead> Documents<R> {
    /// Reads documents from here.
    pub fn new(reader: R) -> Self {
        Self { reader, line: 0, read: 0, pending: None }
    }

    /// How many bytes have been read.
    pub fn position(&self) -> u64 {
        self.read
    }

    /// The next document; `None` at the end.
    ///
    /// # Errors
    /// If reading fails.
    pub fn next_document(&mut self) -> io::Result<Option<Document>> {
        let mut bytes = Vec::new();
        let mut start = 0;
        let mut brackets = Brackets::default();
        while let Some((line, oversized)) = self.next_line()? {
            if oversized {
                let line = self.line;
                return Ok(Some(Document { line, bytes: Err(too_large()) }));
            }
            let opens = matches!(line.first(), Some(b'{' | b'['));
            if opens && !bytes.is_empty() {
                self.line -= 1;
                self.pending = Some(line);
                break;
            }
            let text = line.trim_ascii();
            if bytes.is_empty() {
                if matches!(text, b"" | b"[" | b"]" | b",") {
                    continue;
                }
                start = self.line;
            }
            if bytes.len() + line.len() > MAX_DOCUMENT {
                return Ok(Some(Document { line: start, bytes: Err(too_large()) }));
            }
            brackets.follow(&line);
            bytes.extend(&line);
            if brackets.are_balanced() {
                break;
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let end = bytes.trim_ascii_end();
        let end = end.strip_suffix(b",").unwrap_or(end).len();
        bytes.truncate(end);
        Ok(Some(Document { line: start, bytes: Ok(bytes) }))
    }

    /// The next line, and whether it was too long to keep.
    fn next_line(&mut self) -> io::Result<Option<(Vec<u8>, bool)>> {
        if let Some(line) = self.pending.take() {
            self.line += 1;
            return Ok(Some((line, false)));
        }
        let mut line = Vec::new();
        let limit = MAX_DOCUMENT as u64 + 1;
        let mut read = self.reader.by_ref().take(limit).read_until(b'\n', &mut line)? as u64;
        let oversized = read == limit;
        if oversized {
            line.clear();
            read += self.reader.skip_until(b'\n')? as u64;
        }
        self.read += read;
        if read == 0 {
            return Ok(None);
        }
        self.line += 1;
        if self.line == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Some((line, oversized)))
    }
}

fn too_large() -> String {
    format!("larger than {} MiB: not read", MAX_DOCUMENT >> 20)
}

/// Follows the brackets of a document, outside its strings.
#[derive(Default)]
struct Brackets {
    depth: usize,
    in_string: bool,
}

impl Brackets {
    fn follow(&mut self, line: &[u8]) {
        let mut escaped = false;
        for byte in line {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if self.in_string => escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        // No JSON string goes past the end of its line: this document is broken, and ends here.
        if self.in_string {
            *self = Self::default();
        }
    }

    fn are_balanced(&self) -> bool {
        self.depth == 0
    }
}

#[cfg(test)]
mod tests;
