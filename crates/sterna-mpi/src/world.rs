//! All ranks that a launcher started, as an [`Exchange`].

use crate::shim::{self, Fault, Receives, Told};
use std::num::NonZero;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::thread::available_parallelism;
use sterna::exchange::Exchange;
use sterna::{Error, Result};

/// The ranks that `mpirun` or `srun` started, of which this process is one.
///
/// Every exchange begins with a few bytes from each rank, so that one that fails can say so wherever the others are: see
/// [`fail`](Exchange::fail).
pub struct World {
    state: Mutex<State>,
    group: RwLock<Group>,
}

/// This rank among those there are.
#[derive(Clone)]
struct Group {
    rank: usize,
    /// Where each rank is.
    places: Vec<Place>,
}

/// Where a rank is: its process, the cores that this may use, and its machine.
#[derive(Clone, Default, PartialEq, Eq)]
struct Place {
    process: i64,
    cores: String,
    host: String,
}

/// Whether ranks still speak with each other, and if not, why.
#[derive(Clone, PartialEq, Eq)]
enum State {
    Open,
    /// One has failed, and all know it.
    Closed(String),
    /// One is gone.
    Bereft(String),
    /// What they say makes no sense.
    Lost(String),
}

/// What an exchange is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gather = 1,
    GatherToFirst,
    HearFirst,
    Fail,
    Leave,
}

/// Bytes that one call of MPI moves at most.
const PIECE: usize = 1 << 30;

impl World {
    /// Begins to speak with the others. To be called once, before anything else is done with MPI.
    ///
    /// # Errors
    /// If MPI cannot begin.
    pub fn start() -> Result<Self> {
        let (rank, ranks) = shim::start().map_err(|fault| match fault {
            Fault::Said(text) => Error::Elsewhere(format!("MPI does not begin: {text}")),
            Fault::Fallen => Error::Elsewhere("MPI does not begin: a rank is gone".into()),
        })?;
        let world = Self { state: Mutex::new(State::Open), group: RwLock::new(Group::unknown(rank, ranks)) };
        world.introduce()?;
        Ok(world)
    }

    /// Whether a launcher started this process as one of several, or may have.
    #[expect(
        clippy::disallowed_methods,
        reason = "launchers tell their processes so, and how many there are changes no result"
    )]
    pub fn is_launched() -> bool {
        let said_by =
            ["OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "PMI_FD", "SLURM_STEP_NUM_TASKS"];
        said_by.iter().any(|name| std::env::var_os(name).is_some())
    }

    /// All ranks hear where each of them is.
    fn introduce(&self) -> Result<()> {
        let cores: String = shim::cores().iter().map(|word| format!("{word:x}.")).collect();
        let own = format!("{} {cores} {}", std::process::id(), shim::host());
        let places = self.gather(own.as_bytes())?.iter().map(|said| Place::read(said)).collect();
        let group = Group { places, ..Group::unknown(self.rank(), 0) };
        let processes: Vec<i64> = group.neighbours().map(|rank| group.places[rank].process).collect();
        let cores = available_parallelism().map_or(1, NonZero::get);
        shim::watch(&processes, group.of_these_cores() > cores);
        *self.group.write().unwrap_or_else(PoisonError::into_inner) = group;
        Ok(())
    }

    /// Whether a signal that launchers pass on, SIGUSR1, has asked this rank to stop.
    pub fn is_asked_to_stop(&self) -> bool {
        shim::is_asked_to_stop()
    }

    /// Whether ranks that are left go on without those that die, as the launcher was asked to allow.
    pub fn survives(&self) -> bool {
        shim::survives()
    }

    fn group(&self) -> RwLockReadGuard<'_, Group> {
        self.group.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names of the ranks on this machine that are gone.
    pub fn fallen(&self) -> Vec<String> {
        let group = self.group();
        group.neighbours().filter(|rank| group.is_gone(*rank)).map(|rank| group.name_of(rank)).collect()
    }

    /// Whether it is this rank that tells people what happened: the first one, or where a rank on this machine is gone, the first of
    /// those that are left here.
    pub fn speaks(&self) -> bool {
        let group = self.group();
        match group.neighbours().any(|rank| group.is_gone(rank)) {
            false => group.rank == 0,
            true => group.neighbours().find(|rank| !group.is_gone(*rank)) == Some(group.rank),
        }
    }

    /// Before the last call, where ranks may end by themselves: whether all of them do.
    ///
    /// # Errors
    /// If others go on.
    pub fn leave(&self) -> Result<()> {
        self.exchange(|state| match state {
            State::Open => self.begin(Kind::Leave, &[], state).map(drop),
            State::Closed(_) | State::Bereft(_) | State::Lost(_) => Ok(()),
        })
    }

    /// The last call: all ranks end together, or at once where one is gone.
    pub fn end(&self, code: u8) {
        match self.state.lock().as_deref() {
            Ok(State::Open) => shim::end(false),
            Ok(State::Closed(_)) => shim::end(true),
            Ok(State::Bereft(_) | State::Lost(_)) | Err(_) => shim::abort(i32::from(code.max(1))),
        }
    }

    /// What an exchange of a kind begins with: how many bytes each rank has to say. Where one has failed, all hear why.
    fn begin(&self, kind: Kind, own: &[u8], state: &mut State) -> Result<Vec<usize>> {
        state.check()?;
        let header: Vec<u8> = [kind as u64, own.len() as u64].iter().flat_map(|n| n.to_le_bytes()).collect();
        let all = shim::all(&header, self.ranks()).map_err(|fault| self.lost(fault, state))?;
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
            let left = kinds().position(|other| *other == Kind::Leave as u64);
            *state = State::Lost(match left {
                Some(rank) => format!("{} has ended, but others go on", self.group().name_of(rank)),
                None => "ranks are out of step: do all of them run the same program?".into(),
            });
            return Err(state.why());
        }
        // Only those that have failed say something more.
        let sizes: Vec<usize> =
            failed().zip(&sizes).map(|(failed, size)| if failed { *size } else { 0 }).collect();
        let own = if kind == Kind::Fail { own } else { &[] };
        let all = self.pieces(own, &sizes, Receives::AsAll, state)?;
        let text = all
            .iter()
            .find(|text| !text.is_empty())
            .map_or(Default::default(), |text| String::from_utf8_lossy(text));
        *state = State::Closed(text.into_owned());
        Err(state.why())
    }

    /// What each rank says, in pieces that MPI can count.
    fn pieces(
        &self,
        own: &[u8],
        sizes: &[usize],
        receives: Receives,
        state: &mut State,
    ) -> Result<Vec<Vec<u8>>> {
        let piece = PIECE / sizes.len();
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
        *state = match fault {
            Fault::Fallen => State::Bereft(have_died(&self.fallen())),
            Fault::Said(text) => State::Lost(format!("MPI failed: {text}")),
        };
        state.why()
    }

    /// One exchange at a time.
    fn exchange<T>(&self, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        work(&mut *self.state.lock().map_err(|_| Error::Elsewhere("this rank panicked".into()))?)
    }
}

impl State {
    /// Whether ranks still speak.
    fn check(&self) -> Result<()> {
        match self {
            Self::Open => Ok(()),
            _ => Err(self.why()),
        }
    }

    /// Why they do not.
    fn why(&self) -> Error {
        match self {
            Self::Open => Error::Elsewhere(String::new()),
            Self::Closed(why) | Self::Bereft(why) | Self::Lost(why) => Error::Elsewhere(why.clone()),
        }
    }

    fn is_bereft(&self) -> bool {
        matches!(self, Self::Bereft(_))
    }
}

/// That they have; on other machines it may not be known who.
fn have_died(names: &[String]) -> String {
    match names {
        [] => "a rank on another machine has died".into(),
        [name] => format!("{name} has died"),
        names => format!("{} have died", names.join(", ")),
    }
}

impl Group {
    /// Before anybody has said where it is.
    fn unknown(rank: usize, ranks: usize) -> Self {
        Self { rank, places: vec![Place::default(); ranks] }
    }

    /// The ranks on this machine.
    fn neighbours(&self) -> impl Iterator<Item = usize> + use<'_> {
        let here = &self.places[self.rank].host;
        (0..self.places.len()).filter(move |rank| self.places[*rank].host == *here)
    }

    /// How many ranks may use the cores that this one may, itself among them: as a launcher binds them, all those or none.
    fn of_these_cores(&self) -> usize {
        let ours = &self.places[self.rank].cores;
        self.neighbours().filter(|rank| self.places[*rank].cores == *ours).count()
    }

    fn is_gone(&self, rank: usize) -> bool {
        shim::is_gone(self.places[rank].process)
    }

    fn name_of(&self, rank: usize) -> String {
        format!("rank {rank} on {}", self.places[rank].host)
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
        self.group().rank
    }

    fn ranks(&self) -> usize {
        self.group().places.len()
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
            let receives = if self.rank() == 0 { Receives::AsFirst } else { Receives::Nothing };
            self.pieces(own, &sizes, receives, state)
        })
    }

    fn hear_first(&self, own: &[u8]) -> Result<Vec<u8>> {
        self.exchange(|state| {
            let size = self.begin(Kind::HearFirst, own, state)?[0];
            let mut words = if self.rank() == 0 { own.to_vec() } else { vec![0; size] };
            words
                .chunks_mut(PIECE)
                .try_for_each(shim::from_first)
                .map_err(|fault| self.lost(fault, state))?;
            Ok(words)
        })
    }

    fn name(&self) -> String {
        let group = self.group();
        group.name_of(group.rank)
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
        let own = self.rank();
        (0..self.ranks()).filter(|rank| *rank != own).for_each(|rank| self.warn(rank, why));
        let _ = self.exchange(|state| self.begin(Kind::Fail, why.as_bytes(), state));
    }

    fn neighbours(&self) -> usize {
        self.group().of_these_cores()
    }

    fn place_here(&self) -> usize {
        let group = self.group();
        group.neighbours().take_while(|rank| *rank < group.rank).count()
    }

    fn is_bereft(&self) -> bool {
        self.survives() && self.state.lock().is_ok_and(|state| state.is_bereft())
    }

    fn regroup(&self) -> Result<Option<String>> {
        if !self.survives() {
            return Ok(None);
        }
        let before = self.group().clone();
        loop {
            {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let now = shim::regroup(state.is_bereft()).map_err(|fault| self.lost(fault, &mut state))?;
                let Some((rank, ranks)) = now else { return Ok(None) };
                *state = State::Open;
                *self.group.write().unwrap_or_else(PoisonError::into_inner) = Group::unknown(rank, ranks);
            }
            match self.introduce() {
                // One more has died.
                Err(_) if self.is_bereft() => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        let gone =
            (0..before.places.len()).filter(|rank| !self.group().places.contains(&before.places[*rank]));
        Ok(Some(have_died(&gone.map(|rank| before.name_of(rank)).collect::<Vec<_>>())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(rank: usize, places: &[(&str, &str)]) -> Group {
        let place = |(host, cores): &(&str, &str)| Place::read(format!("1 {cores} {host}").as_bytes());
        Group { rank, places: places.iter().map(place).collect() }
    }

    #[test]
    fn ranks_that_a_launcher_bound_apart_share_no_cores() {
        let bound = [("a", "1."), ("a", "2."), ("b", "1."), ("b", "2.")];
        let unbound = [("a", "3."), ("a", "3."), ("a", "3."), ("b", "3.")];
        let in_pairs = [("a", "1."), ("a", "1."), ("a", "2."), ("a", "2.")];
        for rank in 0..4 {
            assert_eq!(on(rank, &bound).of_these_cores(), 1);
            assert_eq!(on(rank, &in_pairs).of_these_cores(), 2);
            assert_eq!(on(rank, &unbound).of_these_cores(), if rank < 3 { 3 } else { 1 });
        }
    }
}
