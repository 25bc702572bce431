//! A Kubernetes control plane in one process: to try Kausality without a cluster, to embed it, and to test what no
//! cluster shows on demand.

pub mod controllers;
