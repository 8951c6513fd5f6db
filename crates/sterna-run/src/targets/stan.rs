//! `kind = "stan"`: a model of Stan, compiled by BridgeStan, or its source.

use super::{About, File, Kind};
use crate::error::JobError;
use crate::problem::Problem;
use crate::stan::{StanModel, compile};
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
    /// The shared library that BridgeStan makes of a model, or the model's source, which is compiled then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<PathBuf>,
    /// The model's data: a JSON file, or the JSON itself; none if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// Seed of random numbers in the model's block `transformed data`, 0 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
    /// Whether transformed parameters and generated quantities are kept too; they are if it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantities: Option<bool>,
    /// The folder of the BridgeStan that compiles a source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridgestan: Option<PathBuf>,
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
        let about = "a Stan model: model = its source, or the library that BridgeStan makes of it, data = a JSON file";
        About { possible: "what it says", about }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let Some(path) = &self.model else {
            return Err(JobError::Config(
                "target.kind = \"stan\" needs target.model: a model's source (.stan), or the library that BridgeStan made of it".into(),
            ));
        };
        let library = match compile::is_source(path) {
            true => compile::compiled(path, self.bridgestan.as_deref()).map_err(|what| {
                JobError::Config(format!("target.model = {:?}: {what}", path.display().to_string()))
            })?,
            false => path.clone(),
        };
        let (seed, all) = (self.seed.unwrap_or(0), self.quantities.unwrap_or(true));
        let model = StanModel::load(&library, self.data.as_ref(), seed, all)?;
        if let Some(given) = self.dim.filter(|&given| given != model.dim()) {
            let reason = format!("the model has {} free parameters with these data", model.dim());
            return Err(JobError::setting("target.dim", given, reason));
        }
        Ok(model.problem())
    }

    fn in_force(&self, _: &Problem) -> Vec<(&'static str, toml::Value)> {
        vec![("seed", 0.into()), ("quantities", true.into())]
    }

    fn files(&mut self) -> Vec<File<'_>> {
        let data = match &mut self.data {
            Some(Data::File(path)) => Some(File { path, kept_as: Some("data") }),
            _ => None,
        };
        // A library may find others beside itself, so it stays where it is.
        let model = self.model.as_mut().map(|path| File { path, kept_as: None });
        let bridgestan = self.bridgestan.as_mut().map(|path| File { path, kept_as: None });
        [model, data, bridgestan].into_iter().flatten().collect()
    }
}

impl Stan {
    /// Model and BridgeStan named from the root, so that a run goes on from any folder.
    pub fn with_absolute_path(mut self) -> Self {
        for path in [&mut self.model, &mut self.bridgestan].into_iter().flatten() {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
        self
    }
}
