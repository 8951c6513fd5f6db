//! Draws of several runs side by side: each has as many as the shortest, its last ones.

use super::Source;
use crate::draws_file::{Column, DrawsFile, EnsembleDraws, Numbers, Values};
use crate::error::JobError;
use crate::problem::Parameter;
use crate::summary::Summary;
use std::path::Path;

/// Draws of all ladders of all runs.
pub(super) struct Joined {
    /// Variables with a name each, whose coordinates lie one after the other.
    parameters: Vec<Parameter>,
    /// Draws of each ladder: numbers of all variables, draw after draw.
    pub x: Vec<Vec<f64>>,
    pub log_density: Vec<Vec<f64>>,
    replica: Vec<Vec<u32>>,
    /// What local moves did before each draw, where all runs know it.
    acceptance: Vec<Vec<f32>>,
    diverging: Vec<Vec<bool>>,
    /// Other numbers of each draw, by name and ladder.
    statistics: Vec<(String, Vec<Vec<f64>>)>,
}

impl Joined {
    pub fn of(runs: &[Source]) -> Result<Self, JobError> {
        let parameters = parameters(&runs[0]);
        if runs.iter().any(|run| self::parameters(run) != parameters) {
            return Err(JobError::Config(
                "draws.nc of these runs hold other variables: were they written by one version?".into(),
            ));
        }
        let length = |run: &Source| run.columns.first().map_or(0, |column| column.shape[1]);
        let draws = runs.iter().map(length).min().unwrap_or(0);
        let mut joined = Self {
            parameters,
            x: Vec::new(),
            log_density: Vec::new(),
            replica: Vec::new(),
            acceptance: Vec::new(),
            diverging: Vec::new(),
            statistics: common(runs).into_iter().map(|name| (name, Vec::new())).collect(),
        };
        runs.iter().for_each(|run| joined.append(run, draws));
        Ok(joined)
    }

    /// The last draws of a run.
    fn append(&mut self, run: &Source, draws: usize) {
        let posterior: Vec<&Column> =
            run.columns.iter().filter(|column| column.group == "posterior").collect();
        let ladders = posterior.first().map_or(0, |column| column.shape[0]);
        let all: Vec<_> = posterior.iter().map(|column| last(column, draws)).collect();
        for ladder in 0..ladders {
            let mut x = Vec::new();
            for draw in 0..draws {
                for values in &all {
                    let width = values[ladder].len() / draws;
                    x.extend_from_slice(&values[ladder][draw * width..(draw + 1) * width]);
                }
            }
            self.x.push(x);
        }
        let named = |name: &str| {
            run.columns.iter().find(|column| column.group == "sample_stats" && column.name == name)
        };
        let of = |name: &str| named(name).map_or(Vec::new(), |column| last(column, draws));
        self.log_density.extend(of("lp"));
        self.replica.extend(of("replica").into_iter().map(|all| all.into_iter().map(|r| r as u32).collect()));
        let acceptance = of("acceptance_rate").into_iter();
        self.acceptance.extend(acceptance.map(|all| all.into_iter().map(|a| a as f32).collect()));
        let diverging = of("diverging").into_iter();
        self.diverging.extend(diverging.map(|all| all.into_iter().map(|d| d != 0.0).collect()));
        for (name, ladders) in &mut self.statistics {
            ladders.extend(of(name));
        }
    }

    /// A coordinate of each ladder.
    pub fn column(&self, coordinate: usize) -> Vec<Vec<f64>> {
        let dim = self.coordinates();
        self.x.iter().map(|x| x.iter().skip(coordinate).step_by(dim).copied().collect()).collect()
    }

    /// Numbers of a draw.
    pub fn coordinates(&self) -> usize {
        self.parameters.iter().map(Parameter::coordinates).sum()
    }

    pub fn write(&self, path: &Path, first: &Summary) -> Result<(), JobError> {
        let ladders = self.x.len();
        let all_know = [self.acceptance.len(), self.diverging.len()] == [ladders; 2];
        let ensembles = (0..ladders).map(|i| EnsembleDraws {
            x: &self.x[i],
            log_density: &self.log_density[i],
            replica: &self.replica[i],
            acceptance: if all_know { &self.acceptance[i] } else { &[] },
            diverging: if all_know { &self.diverging[i] } else { &[] },
        });
        let file = DrawsFile::new(self.coordinates(), ensembles).named(&self.parameters);
        let file = self.statistics.iter().fold(file, |file, (name, ladders)| {
            file.statistic(name, ladders.iter().map(|values| Values::Real(values)))
        });
        Ok(file.attribute("target", first.setup.target.kind.as_str()).write(path)?)
    }
}

/// The variables of a run's draws.
fn parameters(run: &Source) -> Vec<Parameter> {
    let posterior = run.columns.iter().filter(|column| column.group == "posterior");
    posterior.map(|column| Parameter::array(&column.name, &column.shape[2..])).collect()
}

/// Names of the numbers that all runs have of each draw, beyond those that files have by themselves.
fn common(runs: &[Source]) -> Vec<String> {
    let of_draws = |column: &&Column| column.group == "sample_stats";
    let has =
        |run: &Source, name: &str| run.columns.iter().filter(of_draws).any(|column| column.name == name);
    let own = runs[0].columns.iter().filter(of_draws).map(|column| &column.name);
    own.filter(|name| !["lp", "replica", "acceptance_rate", "diverging"].contains(&name.as_str()))
        .filter(|name| runs.iter().all(|run| has(run, name)))
        .cloned()
        .collect()
}

/// The last draws of each ladder of a variable.
fn last(column: &Column, draws: usize) -> Vec<Vec<f64>> {
    let values: Vec<f64> = match &column.values {
        Numbers::Real(values) => values.clone(),
        Numbers::Count(values) => values.iter().map(|&count| count as f64).collect(),
    };
    let width: usize = column.shape[2..].iter().product();
    let of_ladder = (column.shape[1] * width).max(1);
    values.chunks_exact(of_ladder).map(|all| all[all.len() - draws * width..].to_vec()).collect()
}
