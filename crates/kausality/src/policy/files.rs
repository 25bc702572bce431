//! Policies and requests from files.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use kausality_api::exception::ApprovalPolicy;
use kausality_core::{
    Review,
    exceptions::{Compiled, Exceptions},
};
use serde_json::Value;

pub(super) use crate::replay::policies::{files as all, kind, read};
use crate::replay::{input::Input, policies::exception};

/// Approval policies, as written and ready to be held against changes.
#[derive(Debug, Default)]
pub(super) struct Policies {
    pub written: Vec<ApprovalPolicy>,
    compiled: Vec<Compiled>,
    names: HashSet<String>,
}

impl Policies {
    /// Takes a document in, if it is an approval policy.
    ///
    /// # Errors
    /// All that is wrong with the policy; or that there is another of its name.
    pub(super) fn take(&mut self, file: &Path, document: &Value) -> Result<()> {
        if !matches!(kind(file, document)?, "ApprovalPolicy" | "ClusterApprovalPolicy") {
            return Ok(());
        }
        let (policy, compiled) = exception(file, document)?;
        if !self.names.insert(policy.reference()) {
            bail!("{}: there is another {}", file.display(), policy.reference());
        }
        self.written.push(policy);
        self.compiled.push(compiled);
        Ok(())
    }

    /// All rules.
    pub(super) fn exceptions(&self) -> Exceptions {
        Exceptions::new(&self.compiled)
    }
}

/// The text of a recorded AdmissionReview, named as `FILE` or, where a file holds several, `FILE:LINE`.
pub(super) fn recorded(reference: &str, folder: &Path) -> Result<String> {
    let (file, line) = match reference.rsplit_once(':') {
        Some((file, line)) if !folder.join(reference).exists() => {
            let line: u64 = line.parse().with_context(|| format!("{line:?} is no line, in {reference:?}"))?;
            (folder.join(file), Some(line))
        }
        _ => (folder.join(reference), None),
    };
    let bytes = document(&file, line)?;
    let review = Review::parse(&bytes).with_context(|| reference.to_owned())?;
    if review.request.sub_resource == "scale" {
        bail!("{reference}: a request to scale does not say what it scales: replay the recording instead");
    }
    Ok(review.text.to_owned())
}

fn document(file: &Path, wanted: Option<u64>) -> Result<Vec<u8>> {
    let name = file.display();
    let mut documents = Input::File(PathBuf::from(file)).open()?;
    let mut found = None;
    while let Some(document) = documents.next_document().with_context(|| format!("cannot read {name}"))? {
        match wanted {
            Some(wanted) if document.line != wanted => continue,
            None if found.is_some() => bail!("{name} holds several documents: say which, as {name}:LINE"),
            _ => found = Some(document),
        }
        if wanted.is_some() {
            break;
        }
    }
    match (found, wanted) {
        (Some(document), _) => {
            document.bytes.map_err(|why| anyhow::anyhow!("{name}:{}: {why}", document.line))
        }
        (None, Some(line)) => bail!("{name}: no request starts on line {line}"),
        (None, None) => bail!("{name} holds no request"),
    }
}
