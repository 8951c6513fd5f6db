//! The codes of alarms: each has a section of its name in `docs/alarms.md`.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident $name:literal,)*) => {
        /// Short name of an alarm; `docs/alarms.md` explains each.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum Code {
            $($(#[$doc])* $code,)*
            /// One that this version does not know: of a newer one, or of a fit that a user wrote.
            Other(String),
        }

        impl Code {
            /// All that this version knows.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            /// As it stands in `summary.json`.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$code => $name,)*
                    Self::Other(name) => name,
                }
            }
        }

        impl From<&str> for Code {
            fn from(name: &str) -> Self {
                match name {
                    $($name => Self::$code,)*
                    other => Self::Other(other.into()),
                }
            }
        }
    };
}

codes! {
    /// The target answered NaN or +∞.
    BadDensity "bad-density",
    /// Little passes one pair of chains.
    StarvingPair "starving-pair",
    /// Fewer chains than the barrier asks for.
    TooFewChains "too-few-chains",
    /// Nobody came all the way and back.
    NoRoundTrip "no-round-trip",
    /// Local moves are the bottleneck.
    LowExploration "low-exploration",
    /// Moves of the target chain alone would be cheaper.
    IdleLadder "idle-ladder",
    /// Forward and backward estimates are far apart.
    LogZDisagrees "log-z-disagrees",
    /// Ladders, or halves of the run, disagree about where the mass is.
    MissedMode "missed-mode",
    /// Draws are worth too few independent ones for any use.
    FewDraws "few-draws",
    /// Draws are worth few independent ones.
    LowEss "low-ess",
    /// R̂ is beyond what chance explains.
    RHat "r-hat",
    /// Few came all the way and back.
    FewRoundTrips "few-round-trips",
    /// An estimate is far from what is known to be true.
    TruthMissed "truth-missed",
    /// Halves of ladders disagree about log Z.
    PartsDisagree "parts-disagree",
    /// A part of a molecule was lost.
    Dissociated "dissociated",
    /// No barrier between reference and target.
    LooksLikeReference "looks-like-reference",
    /// Answers of the target differ a little from call to call.
    UnsteadyTarget "unsteady-target",
    /// The score is not the gradient of the log density.
    ScoreNotGradient "score-not-gradient",
    /// The two legs disagree about log Z.
    LegsDisagree "legs-disagree",
    /// Draws went off and hardly came back.
    CarriedOff "carried-off",
    /// No draw came near an optimum that climbs had found.
    UnvisitedOptimum "unvisited-optimum",
    /// Mass that the reference leaves out and draws have not found.
    LeftOut "left-out",
    /// Draws end where the density does not.
    CutTail "cut-tail",
    /// The run ended before it had reached what it was asked for.
    NotReached "not-reached",
    /// Step sizes did not settle.
    StepSizeBound "step-size-bound",
    /// The target chain went where training had no samples.
    Coverage "coverage",
    /// Plain swaps do better than the transport.
    TransportReplaced "transport-replaced",
    /// The loss stopped being a number.
    TrainingDiverged "training-diverged",
    /// Some steps of training had no finite gradient.
    TrainingSkipped "training-skipped",
    /// The CPU took over from a GPU.
    DeviceReplaced "device-replaced",
    /// A learned path rests on few independent samples.
    FewTrainingSamples "few-training-samples",
    /// The flow of a molecule does no better than the affine transport around it.
    FlowReplaced "flow-replaced",
    /// A chiral centre turned over.
    ChiralityFlipped "chirality-flipped",
    /// A peptide bond is cis.
    CisPeptide "cis-peptide",
    /// Nothing can be said about the molecule.
    MoleculeUnreadable "molecule-unreadable",
}

impl From<String> for Code {
    fn from(name: String) -> Self {
        name.as_str().into()
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.name().into()
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    #[test]
    fn names_come_back_as_codes() {
        for code in Code::ALL {
            let text = serde_json::to_string(code).unwrap();
            assert_eq!(text, format!("\"{code}\""));
            assert_eq!(serde_json::from_str::<Code>(&text).unwrap(), *code);
        }
        assert_eq!(Code::from("of-tomorrow"), Code::Other("of-tomorrow".into()));
    }

    /// Codes listed here, sections of the document, and codes that fits raise by name are the same.
    #[test]
    fn every_code_is_explained() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let document = std::fs::read_to_string(root.join("docs/alarms.md")).unwrap();
        let mut explained: Vec<&str> =
            document.lines().filter_map(|l| l.strip_prefix("## `")?.strip_suffix('`')).collect();
        let mut listed: Vec<&str> = Code::ALL.iter().map(Code::name).collect();
        explained.sort_unstable();
        listed.sort_unstable();
        assert_eq!(explained, listed);
        // Not written in one, so that this file does not find itself.
        let raising = ["alarms.push", "(("].concat();
        let mut raised = 0;
        for source in sources(&root.join("crates")) {
            let text = std::fs::read_to_string(source).unwrap();
            for rest in text.split(&raising).skip(1) {
                // The name comes first, on the same line or on the next.
                let Some(code) = rest.trim_start().strip_prefix('"').and_then(|r| r.split('"').next()) else {
                    continue;
                };
                assert!(listed.contains(&code), "{code} is raised but not listed");
                raised += 1;
            }
        }
        assert!(raised >= 6, "{raised} alarms of fits were found");
    }

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let mut out = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                out.extend(sources(&entry));
            } else if entry.extension().is_some_and(|e| e == "rs") {
                out.push(entry);
            }
        }
        out
    }
}
