//! Targets without a score: what is said of what needs one.

use crate::config::{AcceleratorKind, Config, ExplorerKind};
use crate::error::JobError;

/// Refuses what needs a score.
pub(crate) fn check(config: &Config) -> Result<(), JobError> {
    let refused = |key: &str, kind: &str, reason: &str| {
        Err(JobError::combination(key, format_args!("\"{kind}\""), "for a target without a score", reason))
    };
    if !matches!(config.explorer, ExplorerKind::Slice(_)) {
        return refused(
            "explorer.kind",
            config.explorer.kind(),
            "its moves follow the score: \"slice\" needs none",
        );
    }
    if !matches!(
        config.accelerator,
        AcceleratorKind::None(_)
            | AcceleratorKind::Auto(_)
            | AcceleratorKind::Affine(_)
            | AcceleratorKind::Flow(_)
    ) {
        return refused(
            "accelerator.kind",
            config.accelerator.kind(),
            "its losses follow the score all along a path: \"auto\", \"flow\", \"affine\" and \"none\" need none",
        );
    }
    Ok(())
}
