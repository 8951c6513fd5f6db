//! Ranks of a run as threads of one process: what holds for these holds for processes, and needs no launcher.

use std::sync::{Arc, Condvar, Mutex};
use sterna::Result;
use sterna::exchange::Exchange;

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
}

#[derive(Default)]
struct Round {
    number: u64,
    said: Vec<Option<Vec<u8>>>,
    /// What was said in the round before.
    heard: Arc<Vec<Vec<u8>>>,
}

impl Together {
    /// Calls `work` on so many threads, and gives back what each came to.
    pub fn run<T: Send>(ranks: usize, work: impl Fn(Arc<dyn Exchange>) -> T + Sync) -> Vec<T> {
        let round = Mutex::new(Round { said: vec![None; ranks], ..Round::default() });
        let table = Arc::new(Table { ranks, round, turned: Condvar::new() });
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

impl Exchange for Together {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.table.ranks
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut round = self.table.round.lock().expect("no rank panicked");
        let number = round.number;
        round.said[self.rank] = Some(own.to_vec());
        if round.said.iter().all(Option::is_some) {
            round.heard = Arc::new(round.said.iter_mut().filter_map(Option::take).collect());
            round.number += 1;
            self.table.turned.notify_all();
        }
        // The next round cannot end before this rank has spoken in it, so that what was heard is still there.
        let round = self.table.turned.wait_while(round, |round| round.number == number);
        Ok(round.expect("no rank panicked").heard.to_vec())
    }

    fn gather_to_first(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let all = self.gather(own)?;
        Ok(if self.rank == 0 { all } else { Vec::new() })
    }

    fn hear_first(&self, own: &[u8]) -> Result<Vec<u8>> {
        Ok(self.gather(own)?.swap_remove(0))
    }
}
