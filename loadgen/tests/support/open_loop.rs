use redisbench_wire::plan::{Arrival, Load, RateStage};

/// An open loop with the defaults of most tests.
pub struct OpenLoop {
    pub rate_per_second: u64,
    pub stages: Vec<RateStage>,
    pub arrival: Arrival,
    pub pacing_grid_nanoseconds: u64,
    pub unsent_after_nanoseconds: u64,
}

impl OpenLoop {
    /// Evenly spaced, without a grid. Requests stay unsent only when a test hangs.
    pub fn at(rate_per_second: u64) -> Self {
        Self {
            rate_per_second,
            stages: Vec::new(),
            arrival: Arrival::Constant,
            pacing_grid_nanoseconds: 0,
            unsent_after_nanoseconds: 10_000_000_000,
        }
    }

    pub fn load(self) -> Load {
        let Self { rate_per_second, stages, arrival, pacing_grid_nanoseconds, unsent_after_nanoseconds } = self;
        Load::OpenLoop { rate_per_second, stages, arrival, pacing_grid_nanoseconds, unsent_after_nanoseconds }
    }
}

pub fn open_loop(rate_per_second: u64) -> Load {
    OpenLoop::at(rate_per_second).load()
}
