//! Jobs: config, run folders, summaries, progress.
