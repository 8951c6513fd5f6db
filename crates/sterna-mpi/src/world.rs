//! All ranks that a launcher started, as an [`Exchange`].

use crate::shim::{self, Fault, Receives, Told};
use std::sync::Mutex;
use sterna::exchange::Exchange;
use sterna::{Error, Result};

/// The ranks that `mpirun` or `srun` started, of which this process is one.
///
/// Every exchange begins with a few bytes from each rank, so that one that fails can say so wherever the others are: see
/// [`fail`](Exchange::fail).
pub struct World {
    rank: usize,
    /// Where each rank is.
    places: Vec<Place>,
    state: Mutex<State>,
}

/// Where a rank is: its process, the cores that this may use, and its machine.
#[derive(Default)]
struct Place {
    process: i64,
    cores: String,
    host: String,
}

/// Whether ranks still speak with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// One has failed, and all know it.
    Closed,
    /// One is gone.
    Lost,
}

/// What an exchange is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gather = 1,
    GatherToFirst,
    HearFirst,
    Fail,
}

/// Bytes that one call of MPI moves at most.
const PIECE: usize = 1 << 30;

impl World {
    /// Begins to speak with the others. To be called once, before anything else is done with MPI.
    ///
    /// # Errors
    /// If MPI cannot begin.
    pub fn start() -> Result<Self> {
        let failed = |fault| match fault {
            Fault::Said(text) => Error::Elsewhere(format!("MPI does not begin: {text}")),
            Fault::Fallen => Error::Elsewhere("MPI does not begin: a rank is gone".into()),
        };
        let (rank, ranks) = shim::start().map_err(failed)?;
        let unknown = (0..ranks).map(|_| Place::default()).collect();
        let mut world = Self { rank, places: unknown, state: Mutex::new(State::Open) };
        let cores: String = shim::cores().iter().map(|word| format!("{word:x}.")).collect();
        let own = format!("{} {cores} {}", std::process::id(), shim::host());
        world.places = world.gather(own.as_bytes())?.iter().map(|said| Place::read(said)).collect();
        let neighbours: Vec<i64> = world.neighbour_ranks().map(|rank| world.places[rank].process).collect();
        shim::watch(neighbours.leak());
        Ok(world)
    }

    /// Whether a signal that launchers pass on, SIGUSR1, has asked this rank to stop.
    pub fn is_asked_to_stop(&self) -> bool {
        shim::is_asked_to_stop()
    }

    /// The ranks on this machine.
    fn neighbour_ranks(&self) -> impl Iterator<Item = usize> {
        let here = &self.places[self.rank].host;
        (0..self.places.len()).filter(move |rank| self.places[*rank].host == *here)
    }

    /// Names of the ranks on this machine that are gone.
    pub fn fallen(&self) -> Vec<String> {
        let gone = self.neighbour_ranks().filter(|rank| shim::is_gone(self.places[*rank].process));
        gone.map(|rank| self.name_of(rank)).collect()
    }

    /// Whether it is this rank that tells people what happened: the first one, or where a rank on this machine is gone, the first of
    /// those that are left here.
    pub fn speaks(&self) -> bool {
        let left = |rank: &usize| !shim::is_gone(self.places[*rank].process);
        match self.fallen().is_empty() {
            true => self.rank == 0,
            false => self.neighbour_ranks().find(left) == Some(self.rank),
        }
    }

    fn name_of(&self, rank: usize) -> String {
        format!("rank {rank} on {}", self.places[rank].host)
    }

    /// The last call: all ranks end together, or at once where one is gone.
    pub fn end(&self, code: u8) {
        let state = self.state.lock().map_or(State::Lost, |state| *state);
        match state {
            State::Open => shim::end(false),
            State::Closed => shim::end(true),
            State::Lost => shim::abort(i32::from(code.max(1))),
        }
    }

    /// What an exchange of a kind begins with: how many bytes each rank has to say. Where one has failed, all hear why.
    fn begin(&self, kind: Kind, own: &[u8], state: &mut State) -> Result<Vec<usize>> {
        state.check()?;
        let header: Vec<u8> = [kind as u64, own.len() as u64].iter().flat_map(|n| n.to_le_bytes()).collect();
        let all = shim::all(&header, self.places.len()).map_err(|fault| self.lost(fault, state))?;
        let numbers: Vec<u64> = all
            .chunks_exact(8)
            .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
            .collect();
        let kinds = || numbers.iter().step_by(2);
        let sizes: Vec<usize> = numbers.iter().skip(1).step_by(2).map(|size| *size as usize).collect();
        if kinds().all(|other| *other == kind as u64) && kind != Kind::Fail {
            return Ok(sizes);
        }
        let failed = || kinds().map(|other| *other == Kind::Fail as u64);
        if !failed().any(|failed| failed) {
            *state = State::Lost;
            return Err(Error::Elsewhere(
                "ranks are out of step: do all of them run the same program?".into(),
            ));
        }
        // Only those that have failed say something more.
        let sizes: Vec<usize> =
            failed().zip(&sizes).map(|(failed, size)| if failed { *size } else { 0 }).collect();
        let own = if kind == Kind::Fail { own } else { &[] };
        let all = self.pieces(own, &sizes, Receives::AsAll, state)?;
        *state = State::Closed;
        let text = all
            .iter()
            .find(|text| !text.is_empty())
            .map_or(Default::default(), |text| String::from_utf8_lossy(text));
        Err(Error::Elsewhere(text.into_owned()))
    }

    /// What each rank says, in pieces that MPI can count.
    fn pieces(
        &self,
        own: &[u8],
        sizes: &[usize],
        receives: Receives,
        state: &mut State,
    ) -> Result<Vec<Vec<u8>>> {
        let piece = PIECE / self.places.len();
        let longest = sizes.iter().copied().max().unwrap_or(0);
        let mut all: Vec<Vec<u8>> = vec![Vec::new(); sizes.len()];
        for begin in (0..longest).step_by(piece) {
            let lengths: Vec<usize> =
                sizes.iter().map(|size| size.saturating_sub(begin).min(piece)).collect();
            let own = &own[begin.min(own.len())..(begin + piece).min(own.len())];
            let mut heard =
                &shim::gather(own, &lengths, receives).map_err(|fault| self.lost(fault, state))?[..];
            for (all, length) in all.iter_mut().zip(lengths).filter(|_| receives != Receives::Nothing) {
                let (next, rest) = heard.split_at(length);
                all.extend_from_slice(next);
                heard = rest;
            }
        }
        Ok(if receives == Receives::Nothing { Vec::new() } else { all })
    }

    fn lost(&self, fault: Fault, state: &mut State) -> Error {
        *state = State::Lost;
        match fault {
            Fault::Fallen => Error::Elsewhere(format!("{} has died", self.fallen().join(", "))),
            Fault::Said(text) => Error::Elsewhere(format!("MPI failed: {text}")),
        }
    }

    /// One exchange at a time.
    fn exchange<T>(&self, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        work(&mut *self.state.lock().map_err(|_| Error::Elsewhere("this rank panicked".into()))?)
    }
}

impl State {
    /// Whether ranks still speak.
    fn check(self) -> Result<()> {
        match self {
            Self::Open => Ok(()),
            Self::Closed => Err(Error::Elsewhere("another rank has failed".into())),
            Self::Lost => Err(Error::Elsewhere("another rank is gone".into())),
        }
    }
}

impl Place {
    /// As [`World::start`] tells it.
    fn read(said: &[u8]) -> Self {
        let text = String::from_utf8_lossy(said);
        let mut words = text.splitn(3, ' ').map(String::from);
        let mut word = || words.next().unwrap_or_default();
        Self { process: word().parse().unwrap_or(0), cores: word(), host: word() }
    }
}

impl Exchange for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.places.len()
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.exchange(|state| {
            let sizes = self.begin(Kind::Gather, own, state)?;
            self.pieces(own, &sizes, Receives::AsAll, state)
        })
    }

    fn gather_to_first(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.exchange(|state| {
            let sizes = self.begin(Kind::GatherToFirst, own, state)?;
            let receives = if self.rank == 0 { Receives::AsFirst } else { Receives::Nothing };
            self.pieces(own, &sizes, receives, state)
        })
    }

    fn hear_first(&self, own: &[u8]) -> Result<Vec<u8>> {
        self.exchange(|state| {
            let size = self.begin(Kind::HearFirst, own, state)?[0];
            let mut words = if self.rank == 0 { own.to_vec() } else { vec![0; size] };
            words
                .chunks_mut(PIECE)
                .try_for_each(shim::from_first)
                .map_err(|fault| self.lost(fault, state))?;
            Ok(words)
        })
    }

    fn name(&self) -> String {
        self.name_of(self.rank)
    }

    fn tell(&self, to: usize, words: &[u8]) -> Result<()> {
        self.exchange(|state| {
            state.check()?;
            shim::tell(to, Told::Words, words).map_err(|fault| self.lost(fault, state))
        })
    }

    fn listen(&self, waits: bool) -> Result<Option<(usize, Vec<u8>)>> {
        self.exchange(|state| {
            state.check()?;
            match shim::hear(waits).map_err(|fault| self.lost(fault, state))? {
                Some((from, Told::Words, words)) => Ok(Some((from, words))),
                Some((_, Told::Warning, why)) => {
                    Err(Error::Elsewhere(String::from_utf8_lossy(&why).into_owned()))
                }
                None => Ok(None),
            }
        })
    }

    fn warn(&self, to: usize, why: &str) {
        let _ = self.exchange(|state| {
            state.check()?;
            shim::tell(to, Told::Warning, why.as_bytes()).map_err(|fault| self.lost(fault, state))
        });
    }

    fn fail(&self, why: &str) {
        // Whoever waits for a word of this rank alone would not come to what all are told.
        (0..self.ranks()).filter(|rank| *rank != self.rank).for_each(|rank| self.warn(rank, why));
        let _ = self.exchange(|state| self.begin(Kind::Fail, why.as_bytes(), state));
    }

    fn neighbours(&self) -> usize {
        let ours = &self.places[self.rank].cores;
        self.neighbour_ranks().filter(|rank| self.places[*rank].cores == *ours).count()
    }
}
