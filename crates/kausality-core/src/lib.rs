//! The heart of Kausality: what caused a change, did anybody ask for it, may it happen.
//!
//! ```text
//!  bytes ──Review::parse──▶ Review ──questions──▶ what must be known      the shell fetches it
//!                             │                          │
//!                             └────────decide◀──Facts────┘
//!                                        │
//!                                        ▼
//!        Decision { cause, verdict, patch, warnings, audit, effects, trace, explanation }
//! ```
//!
//! Nothing here does I/O, reads a clock or knows a cluster: time, parents and policies are inputs, and so is
//! not knowing them ([`Parent::Gone`], [`Parent::Unreadable`]). Every rule is one small module, and every
//! decision carries the list of rules that led to it.
//!
//! | question | module |
//! |---|---|
//! | what sort of request is this? | [`class`] |
//! | does it change what is wanted? | [`intent`] |
//! | who acts? | [`actor`], [`managers`] |
//! | how far has the parent got? | [`phase`], [`settle`], [`status`] |
//! | what caused the change? | [`cause`] |
//! | may it happen? | [`gate`], [`policy`], [`exceptions`], [`authority`], [`written`] |
//! | what follows? | [`decision`], [`patch`], [`ledger`], [`standing`], [`explain`] |
//!
//! ```
//! use kausality_core::{Facts, Review, Settings, decide};
//!
//! let review = br#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
//!     "uid": "1", "kind": {"version": "v1", "kind": "ConfigMap"}, "operation": "CREATE",
//!     "resource": {"version": "v1", "resource": "configmaps"}, "namespace": "default",
//!     "userInfo": {"username": "alice"},
//!     "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}}}"#;
//! let review = Review::parse(review)?;
//! let settings = Settings::default();
//! let now = "2026-01-24T10:30:00Z".parse().unwrap();
//! let decision = decide(&review, &Facts::new(now, &settings));
//!
//! assert!(decision.verdict.is_allowed());
//! assert_eq!(decision.trace.unwrap().hops()[0].user, "alice");
//! # Ok::<(), kausality_core::review::BadReview>(())
//! ```

pub mod actor;
mod annotations;
mod answer;
pub mod authority;
pub mod cause;
mod change;
mod child;
pub mod class;
mod decide;
pub mod decision;
mod effect;
pub mod entries;
pub mod exceptions;
pub mod explain;
mod facts;
pub mod gate;
pub mod inputs;
pub mod intent;
pub mod ledger;
pub mod managers;
mod mistakes;
mod mode;
pub mod patch;
pub mod phase;
pub mod policy;
mod reconciler;
mod relation;
pub mod review;
pub mod settle;
pub mod standing;
pub mod status;
pub mod summary;
mod trace;
mod used;
mod writers;
pub mod written;

pub use authority::DECIDING;
pub use change::Drift;
pub use child::annotations_bump_generation;
pub use decide::{GUARDED, decide, decisions, is_bound_to_conflict};
pub use decision::Decision;
pub use facts::{
    Activity, Exception, Facts, InputChange, Known, KnownParent, Namespace, Parent, Questions, ScaledObject,
    Settings, parent_id, questions,
};
pub use review::Review;
pub use summary::Summary;

/// The code on the page about library mode, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
mod library_page {}
