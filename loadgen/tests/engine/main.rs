//! The engine against real servers: what it counts is what they count.

mod support;

mod cluster;
mod harness;
mod hostile;
mod standalone;
