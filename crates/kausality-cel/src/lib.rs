//! Expressions in CEL, as Kubernetes has them.
//!
//! ```text
//!  source ──▶ scan ──▶ cel's parser ──▶ check ──▶ lower ──▶ Expression
//!             (limits)                  (types)   (Node)        │
//!                                                               ▼
//!  Facts: what the expression may name, as Objects ───────▶ evaluate, within a budget
//! ```
//!
//! The parser, the values and the functions are those of the `cel` crate. What it lacks is here: a type check, so that
//! mistakes are found when a policy is written and not when it is needed; limits, so that no expression can hold up or
//! end the process, whoever wrote it; and the functions that Kubernetes adds.
//!
//! An [`Expression`] is compiled once and evaluated any number of times, also at once. An [`Object`] is made of JSON once
//! and lent to any number of evaluations.
//!
//! ```
//! use kausality_cel::{Environment, Expression, Facts, Object};
//!
//! struct Known(Object, Object);
//! impl Facts for Known {
//!     fn get(&self, name: &str) -> &Object {
//!         if name == "object" { &self.0 } else { &self.1 }
//!     }
//! }
//!
//! let expression = Expression::compile("object.spec.replicas > 2", Environment::policies())?;
//! let object = Object::of(&serde_json::json!({"spec": {"replicas": 3}}));
//! assert_eq!(expression.holds(&Known(object, Object::null())), Ok(true));
//!
//! let fault = Expression::compile("object.spec.replicas > 2 &&\n  objekt == null", Environment::policies()).unwrap_err();
//! assert_eq!(fault.to_string(), "\
//! 2:3: undeclared reference to 'objekt' (in container '')
//!  |   objekt == null
//!  | ..^");
//! # Ok::<(), kausality_cel::Fault>(())
//! ```

mod budget;
mod check;
mod environment;
mod evaluate;
mod expression;
mod fault;
mod library;
mod lower;
mod macros;
mod node;
mod object;
mod pattern;
mod scan;
mod types;

pub use environment::{Environment, Limits};
pub use expression::{Expression, Facts};
pub use fault::{Failure, Fault};
pub use object::Object;
pub use pattern::WholeText;
pub use types::{Record, Type};

#[cfg(test)]
mod tests;
