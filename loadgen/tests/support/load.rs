//! Open loops.

use redisbench_wire::plan::{Arrival, Load, RateStage};

/// An open loop, but for its rate as most tests want it.
pub struct OpenLoop {
    pub rate_per_second: u64,
    pub stages: Vec<RateStage>,
    pub arrival: Arrival,
    pub pacing_grid_nanoseconds: u64,
    pub unsent_after_nanoseconds: u64,
}

impl OpenLoop {
    /// Evenly spaced, each request at its own instant, and given up only where a test hangs.
    pub fn at(rate_per_second: u64) -> Self {
        Self {
            rate_per_second,
            stages: Vec::new(),
            arrival: Arrival::Constant,
            pacing_grid_nanoseconds: 0,
            unsent_after_nanoseconds: 10_000_000_000,
        }
    }

    /// As a plan has it.
    pub fn load(self) -> Load {
        let Self { rate_per_second, stages, arrival, pacing_grid_nanoseconds, unsent_after_nanoseconds } = self;
        Load::OpenLoop { rate_per_second, stages, arrival, pacing_grid_nanoseconds, unsent_after_nanoseconds }
    }
}

/// Requests at an even rate.
pub fn open_loop(rate_per_second: u64) -> Load {
    OpenLoop::at(rate_per_second).load()
}
