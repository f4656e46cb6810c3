//! The latency of callers during a stall, from the server's counts.
//!
//! Requests are due at a steady rate. The server stops for S, and requests queue. Then they are answered, oldest first.
//! rho is the scheduled rate divided by the rate of the answers. A request that was due t after the stop waited
//! S - t*(1-rho). So over T seconds, the quantile q is S - (1-q)*T*(1-rho).

#[derive(Clone, Debug)]
pub struct Drain {
    pub rate: f64,
    /// S, in seconds.
    pub stopped: f64,
    /// Requests answered when the server stopped.
    pub answered: u64,
    /// Seconds since it continued, and the requests answered by then.
    pub samples: Vec<(f64, u64)>,
}

impl Drain {
    /// The scheduled rate divided by the rate at which the oldest `count` of the backlog were answered. None if that was
    /// not observed.
    pub fn rho(&self, count: f64) -> Option<f64> {
        let wanted = self.answered as f64 + count;
        let (mut time, mut answered) = (0.0, self.answered as f64);
        for (next_time, next_answered) in &self.samples {
            let next_answered = *next_answered as f64;
            if next_answered >= wanted {
                let part = (wanted - answered) / (next_answered - answered).max(1.0);
                return Some((time + (next_time - time) * part.clamp(0.0, 1.0)) * self.rate / count);
            }
            (time, answered) = (*next_time, next_answered);
        }
        None
    }

    /// The quantile of the latency from the due time, of `requests`, in seconds.
    pub fn quantile(&self, quantile: f64, requests: f64) -> Option<f64> {
        let count = (1.0 - quantile) * requests;
        Some(self.stopped - count / self.rate * (1.0 - self.rho(count)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_drain_gives_the_formula() {
        // 180,000 per second while 20,000 are due.
        let samples = (1..=40u32).map(|step| (f64::from(step) * 0.002, 80_000 + u64::from(step) * 360));
        let drain = Drain { rate: 20_000.0, stopped: 0.5, answered: 80_000, samples: samples.collect() };
        let rho = 1.0 / 9.0;
        for quantile in [0.99, 0.999] {
            let exact = 0.5 - (1.0 - quantile) * 10.0 * (1.0 - rho);
            let found = drain.quantile(quantile, 200_000.0).unwrap();
            assert!((found - exact).abs() < 1e-6, "{found} {exact}");
        }
        assert_eq!(drain.rho(1e6), None);
    }
}
