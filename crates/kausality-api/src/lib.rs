//! What Kausality writes down, and how: annotation names and their codecs, drift reports, policies.
//!
//! ```text
//!  parent (Deployment)                         child (ReplicaSet)
//!  ├─ approvals, rejections  who may drift     ├─ trace       why it is as it is
//!  ├─ freeze, snooze         emergency, quiet  ├─ updaters    who changed its intent
//!  ├─ controllers            who reconciles    └─ mode        log or enforce
//!  └─ phase, settled, observedGeneration       how far the parent has got
//! ```
//!
//! Every decoder takes whatever a person or a broken client may have written and says what is wrong with
//! it; none of them decides what follows from that. Rules live in `kausality-core`.
//!
//! ```
//! use kausality_api::approval::{Approval, Entries};
//!
//! let text = r#"[{"apiVersion":"v1","kind":"ConfigMap","name":"*","mode":"always"}, {"kind":"Oops"}]"#;
//! let entries = Entries::<Approval>::decode(text);
//! assert_eq!(entries.valid().count(), 1);
//! assert_eq!(entries.faults().count(), 1);
//! ```

pub mod annotation;
pub mod approval;
pub mod crd;
pub mod drift;
pub mod exception;
pub mod freeze;
pub mod identity;
pub mod mode;
pub mod phase;
pub mod policy;
pub mod report;
pub mod selector;
pub mod snooze;
pub mod status;
pub mod text;
pub mod trace;

/// The API group of everything Kausality defines.
pub const GROUP: &str = "kausality.io";
/// `apiVersion` of Kausality's own kinds.
pub const API_VERSION: &str = "kausality.io/v1alpha1";
