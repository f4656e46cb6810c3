//! Several clients or targets in alternation, because a machine's speed drifts: compared runs are seconds apart.

use redisbench_statistics::summary::median;

use crate::bench::Bench;
use crate::clients::{Client, Cost, Load};
use crate::servers::Servers;
use crate::table::{Floor, Measured};

/// One of the alternating runs, with its name.
pub type Turn<'a> = (&'static str, Client, &'a Servers, Load);

/// The name and the costs of each turn.
#[derive(Debug)]
pub struct Rounds(Vec<(&'static str, Vec<Cost>)>);

impl Rounds {
    /// A B C A B C ...
    pub fn run(bench: &Bench, turns: &[Turn<'_>]) -> anyhow::Result<Self> {
        let mut rounds = Self(turns.iter().map(|(name, ..)| (*name, Vec::new())).collect());
        for _ in 0..bench.pairs {
            for ((_, client, servers, load), (_, costs)) in turns.iter().zip(&mut rounds.0) {
                costs.push(client.cost(bench, servers, load)?);
            }
        }
        Ok(rounds)
    }

    /// Subtracts the cost of starting and connecting. The second half of the turns are the same clients' very short runs, which are
    /// dropped. Returns the median share of the total that was subtracted, for each client.
    pub fn without_starts(&mut self) -> Vec<f64> {
        let short = self.0.split_off(self.0.len() / 2);
        let part = |((_, costs), (_, short)): (&mut (_, Vec<Cost>), &(_, Vec<Cost>))| {
            let mut parts = Vec::new();
            for (cost, short) in costs.iter_mut().zip(short) {
                let (all, once) = (cost.client * cost.requests as f64, short.client * short.requests as f64);
                parts.push(once / all);
                cost.client = (all - once) / cost.requests.saturating_sub(short.requests) as f64;
            }
            median(&parts)
        };
        self.0.iter_mut().zip(&short).map(part).collect()
    }

    /// CPU time per request of a turn: in microseconds, or in each round as the ratio to turn `base`.
    pub fn figure(&self, turn: usize, base: Option<usize>) -> Vec<f64> {
        let client = |turn: usize| self.0[turn].1.iter().map(|cost| cost.client);
        match base {
            None => client(turn).collect(),
            Some(base) => client(turn).zip(client(base)).map(|(cost, base)| cost / base).collect(),
        }
    }

    /// The figure of the first turn, relative to turn `base`. `floor` is the turn with the bare system calls in its place, and
    /// the base for that one.
    pub fn measured(&self, base: Option<usize>, floor: Option<(usize, Option<usize>)>) -> Measured {
        let floor =
            floor.map(|(floor, base)| Floor { ratios: self.figure(0, Some(floor)), instead: self.figure(floor, base) });
        Measured { samples: self.figure(0, base), detail: self.detail(), floor }
    }

    /// Medians in their own units.
    fn detail(&self) -> String {
        let one = |(name, costs): &(&str, Vec<Cost>)| {
            let of = |field: fn(&Cost) -> f64| median(&costs.iter().map(field).collect::<Vec<_>>());
            let (client, rate, server) = (of(|cost| cost.client), of(|cost| cost.rate) / 1e3, of(|cost| cost.server));
            format!("{name} {client:.3} µs at {rate:.0}k/s (server {server:.3} µs)")
        };
        self.0.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(client: f64, requests: u64) -> Cost {
        Cost { client, server: 1.0, requests, rate: 1e6, output: String::new() }
    }

    #[test]
    fn the_floor_is_told_in_the_units_of_the_row() {
        let turn = |name, clients: [f64; 2]| (name, clients.map(|client| cost(client, 1000)).to_vec());
        let rounds = Rounds(vec![turn("ours", [3.0, 6.0]), turn("theirs", [6.0, 12.0]), turn("floor", [2.0, 4.0])]);
        let measured = rounds.measured(Some(1), Some((2, Some(1))));
        assert_eq!(measured.samples, [0.5, 0.5]);
        assert!(measured.detail.starts_with("ours 4.500 µs at 1000k/s (server 1.000 µs); theirs 9.000 µs"));
        let Floor { ratios, instead } = measured.floor.unwrap();
        assert_eq!((ratios, instead), (vec![1.5, 1.5], vec![2.0 / 6.0, 4.0 / 12.0]));
        let absolute = rounds.measured(None, Some((2, None)));
        assert_eq!((absolute.samples, absolute.floor.unwrap().instead), (vec![3.0, 6.0], vec![2.0, 4.0]));
    }

    #[test]
    fn what_is_done_once_is_taken_off() {
        // 5500 µs in total; 100 requests took 500, and in the second round 1500 of them.
        let mut rounds =
            Rounds(vec![("ours", vec![cost(5.0, 1100); 2]), ("ours", vec![cost(5.0, 100), cost(15.0, 100)])]);
        assert_eq!(rounds.without_starts(), [f64::midpoint(500.0, 1500.0) / 5500.0]);
        assert_eq!(rounds.figure(0, None), [5.0, 4.0]);
        assert_eq!(rounds.0.len(), 1);
    }
}
