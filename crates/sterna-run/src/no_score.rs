//! Targets without a score: what goes without one, and what is said of the rest.

use crate::config::{AcceleratorKind, Config, ExplorerKind};
use crate::error::JobError;
use crate::explorers;

/// Moves that need no score, where none were asked for.
pub(crate) fn suit(config: &mut Config, explorer_is_open: bool) {
    if explorer_is_open {
        config.explorer = ExplorerKind::Slice(explorers::Slice::default());
    }
}

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
