//! Trained transports on disk: `transport.safetensors`, with everything needed to rebuild the network.
//!
//! Tensors carry the names of the layout. The metadata hold the network's description as JSON and a checksum;
//! a training state, if there is one, lies beside the weights.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::additive::AdditiveDriftConfig;
use crate::egnn::EgnnDriftConfig;
use crate::energy_model::{EnergyConfig, EnergyNetwork};
use crate::mlp::MlpDriftConfig;
use crate::optimiser::Progress;
use crate::parameters::{Layout, Parameters};
use crate::realnvp::{RealNvp, RealNvpConfig};
use crate::training::TrainingState;
use crate::transport::DriftNetwork;
use crate::{Error, Real, Result};

const METADATA: &str = "sterna";
const FORMAT: &str = "sterna-transport";
const VERSION: &str = "3";
const STATE: [&str; 3] = ["training.average", "training.first", "training.second"];

/// The networks of this crate, as a description that a file can hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NetworkConfig {
    /// A drift that is an MLP.
    MlpDrift(MlpDriftConfig),
    /// A drift of each coordinate alone.
    AdditiveDrift(AdditiveDriftConfig),
    /// A drift that is an EGNN.
    EgnnDrift(EgnnDriftConfig),
    /// A RealNVP flow.
    RealNvp(RealNvpConfig),
    /// An energy model.
    Energy(EnergyConfig),
}

/// A network built from its description.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// A drift.
    Drift(DriftNetwork),
    /// A flow.
    Flow(RealNvp),
    /// An energy model.
    Energy(EnergyNetwork),
}

impl NetworkConfig {
    /// The schedule that the network was made for, where it was made for one.
    pub fn schedule(&self) -> Option<&[f64]> {
        match self {
            Self::MlpDrift(config) => Some(&config.conditioning.schedule),
            Self::AdditiveDrift(config) => Some(&config.conditioning.schedule),
            Self::EgnnDrift(config) => Some(&config.conditioning.schedule),
            Self::RealNvp(config) => Some(&config.conditioning.schedule),
            Self::Energy(_) => None,
        }
    }

    /// The same network for the chains of another schedule, where it is made for one.
    pub fn on_schedule(mut self, schedule: &[f64]) -> Self {
        let conditioning = match &mut self {
            Self::MlpDrift(config) => &mut config.conditioning,
            Self::AdditiveDrift(config) => &mut config.conditioning,
            Self::EgnnDrift(config) => &mut config.conditioning,
            Self::RealNvp(config) => &mut config.conditioning,
            Self::Energy(_) => return self,
        };
        conditioning.schedule = schedule.to_vec();
        self
    }

    /// Adds the network's parameters to `layout`.
    ///
    /// # Errors
    /// If the description is impossible.
    pub fn build(&self, layout: &mut Layout, name: &str) -> Result<Network> {
        Ok(match self {
            Self::MlpDrift(config) => Network::Drift(config.build(layout, name)?.into()),
            Self::AdditiveDrift(config) => Network::Drift(config.build(layout, name)?.into()),
            Self::EgnnDrift(config) => Network::Drift(config.build(layout, name)?.into()),
            Self::RealNvp(config) => Network::Flow(config.build(layout, name)?),
            Self::Energy(config) => Network::Energy(config.build(layout, name)?),
        })
    }
}

/// What a file held: a description and named tensors.
#[derive(Debug)]
pub struct Stored<D> {
    /// The description given when saving, such as a [`NetworkConfig`].
    pub description: D,
    origin: String,
    bytes: Vec<u8>,
    progress: Option<Progress>,
}

/// Writes parameters with their description, and a training state to go on from if there is one.
///
/// The file is complete or absent: it is written beside its place and then moved there.
///
/// # Errors
/// If the parameters do not fit the layout or the file cannot be written.
pub fn save<T: Real, D: Serialize>(
    path: &Path,
    description: &D,
    layout: &Layout,
    parameters: &Parameters<T>,
    state: Option<&TrainingState<T>>,
) -> Result<()> {
    let bytes = to_bytes(description, layout, parameters, state)?;
    let file = |source| Error::File { path: path.to_owned(), source };
    let beside = path.with_extension("safetensors.part");
    std::fs::write(&beside, bytes).map_err(file)?;
    std::fs::rename(&beside, path).map_err(file)
}

/// Reads a file that [`save`] wrote.
///
/// # Errors
/// If it cannot be read, is damaged, or its description is of another kind.
pub fn load<D: DeserializeOwned>(path: &Path) -> Result<Stored<D>> {
    let bytes = std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    from_bytes(bytes, &path.display().to_string())
}

/// The contents of a file as [`save`] writes it.
///
/// # Errors
/// If the parameters do not fit the layout.
pub fn to_bytes<T: Real, D: Serialize>(
    description: &D,
    layout: &Layout,
    parameters: &Parameters<T>,
    state: Option<&TrainingState<T>>,
) -> Result<Vec<u8>> {
    let given = parameters.values().len();
    if given != layout.len() {
        return Err(Error::ParameterCount { expected: layout.len(), given });
    }
    let invalid = |reason: String| Error::Format { origin: "the description".into(), reason };
    let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = layout
        .slots()
        .map(|slot| {
            let values = &parameters.values()[slot.offset..slot.offset + slot.len()];
            (slot.name.clone(), vec![slot.rows, slot.cols], little_endian(values))
        })
        .collect();
    let mut metadata = BTreeMap::from([
        ("format".to_owned(), FORMAT.to_owned()),
        ("version".to_owned(), VERSION.to_owned()),
        ("description".to_owned(), serde_json::to_string(description).map_err(|e| invalid(e.to_string()))?),
    ]);
    if let Some(state) = state {
        for (name, values) in STATE.iter().zip([&state.average, &state.first, &state.second]) {
            tensors.push((name.to_string(), vec![values.len()], little_endian(values)));
        }
        let progress = serde_json::to_string(&state.progress).map_err(|e| invalid(e.to_string()))?;
        metadata.insert("training".to_owned(), progress);
    }
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let description = ("description", metadata["description"].as_bytes());
    let sum = checksum(tensors.iter().map(|(name, _, bytes)| (&name[..], &bytes[..])).chain([description]));
    metadata.insert("checksum".to_owned(), sum);
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(dtype::<T>(), shape.clone(), bytes).expect("shape and bytes agree");
        (name.as_str(), view)
    });
    // One entry holds all: a map of several would be written in an order that changes from run to run.
    let all = serde_json::to_string(&metadata).map_err(|e| invalid(e.to_string()))?;
    let metadata = HashMap::from([(METADATA.to_owned(), all)]);
    safetensors::serialize(views, Some(metadata)).map_err(|e| invalid(e.to_string()))
}

/// Reads the contents of a file; `origin` names them in errors.
///
/// # Errors
/// As [`load`].
pub fn from_bytes<D: DeserializeOwned>(bytes: Vec<u8>, origin: &str) -> Result<Stored<D>> {
    let format = |reason: String| Error::Format { origin: origin.to_owned(), reason };
    let (_, header) = SafeTensors::read_metadata(&bytes)
        .map_err(|e| format(format!("truncated or damaged header ({e})")))?;
    let metadata: BTreeMap<String, String> = header
        .metadata()
        .as_ref()
        .and_then(|all| serde_json::from_str(all.get(METADATA)?).ok())
        .unwrap_or_default();
    if metadata.get("format").map(String::as_str) != Some(FORMAT) {
        return Err(format("it was not written by this program".into()));
    }
    let version = metadata.get("version").map_or("none", String::as_str);
    if version != VERSION {
        return Err(format(format!(
            "its version is {version}, this program reads {VERSION}: train it again"
        )));
    }
    let tensors =
        SafeTensors::deserialize(&bytes).map_err(|e| format(format!("truncated or damaged ({e})")))?;
    let mut all: Vec<_> = tensors.tensors();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    // The description as well: one that lies about sizes would be believed.
    let described = metadata.get("description").map_or(&b""[..], |d| d.as_bytes());
    let sum =
        checksum(all.iter().map(|(name, view)| (&name[..], view.data())).chain([("description", described)]));
    if metadata.get("checksum") != Some(&sum) {
        return Err(format("its contents do not match its checksum".into()));
    }
    let parse = |key: &str| metadata.get(key).map(String::as_str);
    let description = parse("description").ok_or_else(|| format("it has no description".into()))?;
    let description = serde_json::from_str(description)
        .map_err(|e| format(format!("its description is of another kind ({e})")))?;
    let progress = parse("training")
        .map(|text| serde_json::from_str(text).map_err(|e| format(format!("bad training counters ({e})"))))
        .transpose()?;
    Ok(Stored { description, origin: origin.to_owned(), bytes, progress })
}

impl<D> Stored<D> {
    /// The same tensors under another description.
    pub(crate) fn with_description<E>(self, description: E) -> Stored<E> {
        let Self { origin, bytes, progress, .. } = self;
        Stored { description, origin, bytes, progress }
    }

    fn mismatch(&self, reason: String) -> Error {
        Error::Mismatch { origin: self.origin.clone(), reason }
    }

    /// The parameters, if the file holds exactly those of `layout`.
    ///
    /// # Errors
    /// If a tensor is missing, left over, or of another shape; or would lose precision.
    pub fn parameters<T: Real>(&self, layout: &Layout) -> Result<Parameters<T>> {
        let tensors = self.tensors()?;
        let mut values = Vec::with_capacity(layout.len());
        for slot in layout.slots() {
            let view = tensors
                .tensor(&slot.name)
                .map_err(|_| self.mismatch(format!("it has no tensor {:?}", slot.name)))?;
            if view.shape() != [slot.rows, slot.cols] {
                let (found, needed) = (view.shape(), [slot.rows, slot.cols]);
                return Err(self.mismatch(format!("{:?} is {found:?}, not {needed:?}", slot.name)));
            }
            values.extend(self.read::<T>(&slot.name, &view)?);
        }
        let left_over = tensors
            .names()
            .into_iter()
            .find(|name| !STATE.contains(name) && layout.slots().all(|slot| slot.name != *name));
        if let Some(name) = left_over {
            return Err(self.mismatch(format!("it also has a tensor {name:?}")));
        }
        Ok(Parameters::new(values))
    }

    /// The training state, if one was saved.
    ///
    /// # Errors
    /// As [`parameters`](Self::parameters).
    pub fn state<T: Real>(&self, layout: &Layout) -> Result<Option<TrainingState<T>>> {
        let Some(progress) = self.progress else { return Ok(None) };
        let tensors = self.tensors()?;
        let part = |name: &str| {
            let view =
                tensors.tensor(name).map_err(|_| self.mismatch(format!("it has no tensor {name:?}")))?;
            let values = self.read::<T>(name, &view)?;
            if values.len() != layout.len() {
                let reason = format!("{name:?} has {} numbers, not {}", values.len(), layout.len());
                return Err(self.mismatch(reason));
            }
            Ok(values)
        };
        Ok(Some(TrainingState {
            parameters: self.parameters::<T>(layout)?.values().to_vec(),
            average: part(STATE[0])?,
            first: part(STATE[1])?,
            second: part(STATE[2])?,
            progress,
        }))
    }

    fn tensors(&self) -> Result<SafeTensors<'_>> {
        SafeTensors::deserialize(&self.bytes).map_err(|e| self.mismatch(e.to_string()))
    }

    fn read<T: Real>(&self, name: &str, view: &TensorView<'_>) -> Result<Vec<T>> {
        let wide = |bytes: &[u8]| T::from_f64(f32::read_le(bytes) as f64);
        match view.dtype() {
            found if found == dtype::<T>() => {
                Ok(view.data().chunks_exact(T::BYTES).map(T::read_le).collect())
            }
            // f32 into f64 loses nothing.
            Dtype::F32 => Ok(view.data().chunks_exact(4).map(wide).collect()),
            found => Err(self.mismatch(format!("{name:?} holds {found:?}, not {}", T::NAME))),
        }
    }
}

fn dtype<T: Real>() -> Dtype {
    if T::BYTES == 4 { Dtype::F32 } else { Dtype::F64 }
}

fn little_endian<T: Real>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * T::BYTES);
    values.iter().for_each(|x| x.write_le(&mut bytes));
    bytes
}

/// FNV-1a over names and contents: notices accidents, not malice.
fn checksum<'a>(parts: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    for (name, bytes) in parts {
        for byte in name.bytes().chain(bytes.iter().copied()) {
            hash = (hash ^ byte as u64).wrapping_mul(0x0100_0000_01B3);
        }
    }
    format!("{hash:016x}")
}
