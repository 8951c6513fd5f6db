//! Ranks of a run as threads of one process: what holds for these holds for processes, and needs no launcher.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use sterna::exchange::Exchange;
use sterna::{Error, Result};

/// One of several ranks, each on a thread of its own.
pub struct Together {
    rank: usize,
    table: Arc<Table>,
}

/// Where ranks lay down what they say. A round is over when all have read it.
struct Table {
    ranks: usize,
    round: Mutex<Round>,
    turned: Condvar,
    /// What each rank has been told and has not heard yet, and by whom.
    told: Mutex<Vec<VecDeque<(usize, Said)>>>,
    news: Condvar,
}

/// What a rank says, or why it cannot go on.
type Said = std::result::Result<Vec<u8>, String>;

#[derive(Default)]
struct Round {
    number: u64,
    said: Vec<Option<Said>>,
    /// What was said in the round before.
    heard: Arc<Vec<Said>>,
}

impl Together {
    /// Calls `work` on so many threads, and gives back what each came to.
    pub fn run<T: Send>(ranks: usize, work: impl Fn(Arc<dyn Exchange>) -> T + Sync) -> Vec<T> {
        let round = Mutex::new(Round { said: vec![None; ranks], ..Round::default() });
        let (turned, news) = Default::default();
        let told = Mutex::new(vec![VecDeque::new(); ranks]);
        let table = Arc::new(Table { ranks, round, turned, told, news });
        std::thread::scope(|scope| {
            let begin = |rank| {
                let exchange = Arc::new(Self { rank, table: table.clone() });
                let work = &work;
                scope.spawn(move || work(exchange))
            };
            let threads: Vec<_> = (0..ranks).map(begin).collect();
            threads.into_iter().map(|thread| thread.join().expect("a rank panicked")).collect()
        })
    }
}

impl Together {
    fn put(&self, to: usize, said: Said) {
        let mut told = self.table.told.lock().expect("no rank panicked");
        told[to].push_back((self.rank, said));
        self.table.news.notify_all();
    }

    /// One round: what each rank says.
    fn round(&self, own: Said) -> Arc<Vec<Said>> {
        let mut round = self.table.round.lock().expect("no rank panicked");
        if round.heard.iter().any(|said| said.is_err()) {
            return round.heard.clone();
        }
        let number = round.number;
        round.said[self.rank] = Some(own);
        if round.said.iter().all(Option::is_some) {
            round.heard = Arc::new(round.said.iter_mut().filter_map(Option::take).collect());
            round.number += 1;
            self.table.turned.notify_all();
        }
        // The next round cannot end before this rank has spoken in it, so that what was heard is still there.
        let round = self.table.turned.wait_while(round, |round| round.number == number);
        round.expect("no rank panicked").heard.clone()
    }
}

impl Exchange for Together {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.table.ranks
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let all = self.round(Ok(own.to_vec()));
        all.iter().map(|said| said.clone().map_err(Error::Elsewhere)).collect()
    }

    fn gather_to_first(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let all = self.gather(own)?;
        Ok(if self.rank == 0 { all } else { Vec::new() })
    }

    fn hear_first(&self, own: &[u8]) -> Result<Vec<u8>> {
        Ok(self.gather(own)?.swap_remove(0))
    }

    fn tell(&self, to: usize, words: &[u8]) -> Result<()> {
        self.put(to, Ok(words.to_vec()));
        Ok(())
    }

    fn listen(&self, waits: bool) -> Result<Option<(usize, Vec<u8>)>> {
        let mut told = self.table.told.lock().expect("no rank panicked");
        if waits {
            told = self
                .table
                .news
                .wait_while(told, |told| told[self.rank].is_empty())
                .expect("no rank panicked");
        }
        let next = told[self.rank].pop_front();
        next.map(|(from, said)| said.map(|words| (from, words)).map_err(Error::Elsewhere)).transpose()
    }

    fn warn(&self, to: usize, why: &str) {
        self.put(to, Err(why.to_string()));
    }

    fn fail(&self, why: &str) {
        (0..self.table.ranks).filter(|to| *to != self.rank).for_each(|to| self.warn(to, why));
        self.round(Err(why.to_string()));
    }
}
