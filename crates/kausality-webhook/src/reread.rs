//! Files that are read again when they change, such as those of a mounted Secret.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;

use crate::certificates::CertificateError;

/// The least time between two looks at the files.
const PAUSE: Duration = Duration::from_secs(1);

/// Makes a value of what is in the files, which come in the order of their paths.
type Parse<T> = fn(&[PathBuf], &[Vec<u8>]) -> Result<T, CertificateError>;

/// Files, and the last good value that was in them.
#[derive(Debug)]
pub(crate) struct Reread<T> {
    /// What the files hold, for logs.
    what: &'static str,
    files: Vec<PathBuf>,
    parse: Parse<T>,
    current: ArcSwap<T>,
    last: Mutex<Look>,
}

/// A look at the files.
#[derive(Debug)]
struct Look {
    at: Instant,
    /// A digest of what was there. Times of modification would miss what is written twice in one tick, and
    /// the files are small.
    saw: u64,
}

impl<T> Reread<T> {
    /// Reads the files for the first time.
    pub(crate) fn open(
        what: &'static str,
        files: Vec<PathBuf>,
        parse: Parse<T>,
    ) -> Result<Self, CertificateError> {
        let texts = read(&files)?;
        let last = Mutex::new(Look { at: Instant::now(), saw: digest(&texts) });
        let current = ArcSwap::from_pointee(parse(&files, &texts)?);
        Ok(Self { what, files, parse, current, last })
    }

    /// The value that is in the files by now, or the last one that could be used.
    pub(crate) fn current(&self) -> Arc<T> {
        self.refresh();
        self.current.load_full()
    }

    /// Looks at the files if it is time to.
    fn refresh(&self) {
        // Whoever comes while another looks goes on with the value that is there.
        let Ok(mut last) = self.last.try_lock() else { return };
        if last.at.elapsed() < PAUSE {
            return;
        }
        last.at = Instant::now();
        let texts = read(&self.files);
        let saw = match &texts {
            Ok(texts) => digest(texts),
            Err(error) => digest(&error.to_string()),
        };
        if std::mem::replace(&mut last.saw, saw) == saw {
            return;
        }
        let (what, files) = (self.what, names(&self.files));
        match texts.and_then(|texts| (self.parse)(&self.files, &texts)) {
            Ok(value) => {
                self.current.store(Arc::new(value));
                tracing::info!(files, "{what} replaced");
            }
            Err(error) => {
                tracing::error!(files, %error, "{what} on disk cannot be used; the one before it stays in use");
            }
        }
    }

    /// Looks at the files as if the pause were over.
    #[cfg(test)]
    pub(crate) fn look(&self) -> Arc<T> {
        self.last.lock().unwrap().at -= PAUSE;
        self.current()
    }

    /// What is in use while nobody may look.
    #[cfg(test)]
    pub(crate) fn during_the_pause(&self) -> Arc<T> {
        self.last.lock().unwrap().at = Instant::now() + PAUSE;
        self.current()
    }
}

/// The names of files, for people.
pub(crate) fn names(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" and ")
}

fn read(files: &[PathBuf]) -> Result<Vec<Vec<u8>>, CertificateError> {
    let read = |path: &PathBuf| {
        fs::read(path).map_err(|source| CertificateError::Unreadable { path: Path::to_owned(path), source })
    };
    files.iter().map(read).collect()
}

fn digest(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
