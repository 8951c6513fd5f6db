//! Skeletons to copy, each with the test that such a thing must pass and a broken twin that must not (CONTRIBUTING.md).

mod accelerator;
mod alarm;
mod explorer;
mod layer;
mod target;
