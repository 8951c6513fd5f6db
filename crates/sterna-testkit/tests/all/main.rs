//! Tests of what `sterna-testkit` offers, one module per subject, in one binary.

mod dependencies;
mod kit;
mod tidy;
