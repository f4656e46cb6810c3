//! Compiles a spec into trials. Pure functions of the spec.

mod preset;
mod search;
mod sweep;
mod trials;

pub use search::{GoodStep, SearchState, SearchTrial, Why, of_searches, standing};
pub use trials::{Kind, Plan, Trial, compile};
