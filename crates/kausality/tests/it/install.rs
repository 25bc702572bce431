//! The chart, the plain manifests, `kausality install` and `kausality uninstall`, with helm and a real API server.

mod chart;
mod documentation;
mod image;
mod plain;
mod release;
mod removal;
mod reports;
mod rights;
pub(crate) mod stage;
