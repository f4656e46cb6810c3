//! Several clients or targets in alternation, because a machine's speed drifts: compared runs are seconds apart.

use crate::clients::{Bench, Cost};
use crate::table::{Floor, median};

/// One of the alternating runs.
pub type Turn<'a> = (&'static str, Box<dyn FnMut() -> anyhow::Result<Cost> + 'a>);

/// The cost of each in each round.
#[derive(Debug)]
pub struct Rounds {
    names: Vec<&'static str>,
    costs: Vec<Vec<Cost>>,
}

impl Rounds {
    /// A B C A B C ...
    ///
    /// # Errors
    /// If one fails.
    pub fn run(bench: &Bench, mut turns: Vec<Turn<'_>>) -> anyhow::Result<Self> {
        let mut costs: Vec<Vec<Cost>> = turns.iter().map(|_| Vec::new()).collect();
        for _ in 0..bench.pairs {
            for ((_, turn), costs) in turns.iter_mut().zip(&mut costs) {
                costs.push(turn()?);
            }
        }
        Ok(Self { names: turns.iter().map(|(name, _)| *name).collect(), costs })
    }

    /// Number of alternating runs per round.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Subtracts the cost of starting and connecting, which is measured once, in a very short run of each. Returns its
    /// share of the total, for each.
    pub fn without(&mut self, short: &[Cost]) -> Vec<f64> {
        let part = |(costs, short): (&mut Vec<Cost>, &Cost)| {
            let mut parts = Vec::new();
            for cost in costs {
                let (all, once) = (cost.client * cost.requests as f64, short.client * short.requests as f64);
                parts.push(once / all);
                cost.client = (all - once) / cost.requests.saturating_sub(short.requests) as f64;
            }
            median(&parts).unwrap_or(0.0)
        };
        self.costs.iter_mut().zip(short).map(part).collect()
    }

    /// CPU time of the client per request in microseconds.
    pub fn client(&self, index: usize) -> Vec<f64> {
        self.costs[index].iter().map(|cost| cost.client).collect()
    }

    /// Each round's ratio.
    pub fn ratios(&self, of: usize, to: usize) -> Vec<f64> {
        self.client(of).iter().zip(self.client(to)).map(|(of, to)| of / to).collect()
    }

    /// The figure with `floor` in the place of `ours`: its ratio to `base`, or its cost without one.
    pub fn floor(&self, ours: usize, floor: usize, base: Option<usize>) -> Floor {
        let instead = base.map_or_else(|| self.client(floor), |base| self.ratios(floor, base));
        Floor { ratios: self.ratios(ours, floor), instead }
    }

    /// Medians in their own units.
    pub fn detail(&self) -> String {
        let one = |(name, costs): (&&str, &Vec<Cost>)| {
            let of = |field: fn(&Cost) -> f64| median(&costs.iter().map(field).collect::<Vec<_>>()).unwrap_or(0.0);
            format!(
                "{name} {:.3} µs at {:.0}k/s (server {:.3} µs)",
                of(|cost| cost.client),
                of(|cost| cost.rate) / 1e3,
                of(|cost| cost.server)
            )
        };
        self.names.iter().zip(&self.costs).map(one).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_told_in_the_units_of_the_row() {
        let cost = |client| Cost { client, server: 1.0, requests: 1000, rate: 1e6, output: String::new() };
        let costs = [3.0, 6.0, 2.0].map(|client| vec![cost(client), cost(2.0 * client)]).to_vec();
        let rounds = Rounds { names: vec!["ours", "theirs", "floor"], costs };
        assert_eq!(rounds.ratios(0, 1), [0.5, 0.5]);
        let Floor { ratios, instead } = rounds.floor(0, 2, Some(1));
        assert_eq!((ratios, instead), (vec![1.5, 1.5], vec![2.0 / 6.0, 4.0 / 12.0]));
        assert_eq!(rounds.floor(0, 2, None).instead, [2.0, 4.0]);
        assert!(rounds.detail().starts_with("ours 4.500 µs at 1000k/s (server 1.000 µs); theirs 9.000 µs"));
    }

    #[test]
    fn what_is_done_once_is_taken_off() {
        let cost = |client, requests| Cost { client, server: 1.0, requests, rate: 1e6, output: String::new() };
        let mut rounds = Rounds { names: vec!["ours"], costs: vec![vec![cost(5.0, 1100)]] };
        // 5500 us in total; 100 requests took 500 of them.
        assert_eq!(rounds.without(&[cost(5.0, 100)]), [500.0 / 5500.0]);
        assert_eq!(rounds.client(0), [5.0]);
        let mut rounds = Rounds { names: vec!["ours"], costs: vec![vec![cost(5.0, 1100)]] };
        rounds.without(&[cost(15.0, 100)]);
        assert_eq!(rounds.client(0), [4.0]);
    }
}
