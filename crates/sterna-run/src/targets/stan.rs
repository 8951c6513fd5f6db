//! `kind = "stan"`: a model of Stan, compiled by BridgeStan.

use super::{About, File, Kind};
use crate::error::JobError;
use crate::problem::Problem;
use crate::stan::StanModel;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::path::PathBuf;

/// Fields of `kind = "stan"`. Names of files are relative to the config's folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stan {
    /// Free parameters, which follow from model and data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// The shared library that BridgeStan makes of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<PathBuf>,
    /// The model's data: a JSON file, or the JSON itself; none if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// Seed of random numbers in the model's block `transformed data`, 0 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
}

/// Data of a model, as a config gives them: what begins with `{` is JSON, anything else names a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// The JSON itself.
    Inline(String),
    /// A file that holds it.
    File(PathBuf),
}

impl Data {
    /// The JSON.
    pub fn text(&self) -> Result<String, JobError> {
        match self {
            Self::Inline(text) => Ok(text.clone()),
            Self::File(path) => std::fs::read_to_string(path)
                .map_err(|error| JobError::Config(format!("target.data = {self}: cannot read it: {error}"))),
        }
    }
}

/// The file's name in quotes, or what the data are.
impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Inline(text) => write!(f, "{} bytes of JSON", text.len()),
            Self::File(path) => write!(f, "{:?}", path.display().to_string()),
        }
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Inline(text) => text.serialize(to),
            Self::File(path) => path.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Ok(match text.trim_start().starts_with('{') {
            true => Self::Inline(text),
            false => Self::File(text.into()),
        })
    }
}

impl Kind for Stan {
    fn about(&self) -> About {
        let about = "a Stan model: model = the library that BridgeStan makes of it, data = a JSON file";
        About { possible: "what it says", about }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let Some(path) = &self.model else {
            return Err(JobError::Config(
                "target.kind = \"stan\" needs target.model, the shared library that BridgeStan makes of a model".into(),
            ));
        };
        let model = StanModel::load(path, self.data.as_ref(), self.seed.unwrap_or(0))?;
        if let Some(given) = self.dim.filter(|&given| given != model.dim()) {
            let reason = format!("the model has {} free parameters with these data", model.dim());
            return Err(JobError::setting("target.dim", given, reason));
        }
        Ok(model.problem())
    }

    fn files(&mut self) -> Vec<File<'_>> {
        let data = match &mut self.data {
            Some(Data::File(path)) => Some(File { path, kept_as: Some("data") }),
            _ => None,
        };
        // A library may find others beside itself, so it stays where it is.
        let model = self.model.as_mut().map(|path| File { path, kept_as: None });
        [model, data].into_iter().flatten().collect()
    }
}

impl Stan {
    /// The model named from the root, so that a run goes on from any folder.
    pub fn with_absolute_path(mut self) -> Self {
        if let Some(model) = &mut self.model
            && let Ok(path) = std::path::absolute(&*model)
        {
            *model = path;
        }
        self
    }
}
