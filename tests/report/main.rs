//! Reports, as a program sees them: snapshots, figures, comparisons, pictures.
#![allow(clippy::unwrap_used, reason = "a test")]

mod saved;
