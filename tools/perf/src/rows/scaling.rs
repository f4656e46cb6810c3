//! Workers share nothing, so a request should cost the same with two workers as with one.

use super::rounds::Rounds;
use crate::clients::{Bench, Load, Operation};
use crate::servers::{Kind, Servers};
use crate::table::Measured;

/// CPU time per request of two workers against one. With four processors or more, the rates are conclusive too: two
/// workers and two threads of the null server then have one each.
pub fn two(bench: &Bench) -> anyhow::Result<Measured> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let requests = bench.requests(6_000_000);
    let load = |workers| Load { workers, ..Load::closed(Operation::Get, 16, requests) };
    let apart = processors >= 4;
    let [clients, cpus] = if apart { ["0-1".to_owned(), "2-3".to_owned()] } else { ["0-1".into(), "0-1".into()] };
    let servers = Servers::start(bench, Kind::Null(2), &cpus)?;
    let rounds = Rounds::run(
        bench,
        vec![
            ("two workers", Box::new(|| bench.ours(&servers, &load(2), &clients))),
            ("one worker", Box::new(|| bench.ours(&servers, &load(1), &clients))),
        ],
    )?;
    let mut detail = rounds.detail();
    detail.push_str(if apart {
        "; two processors for the workers, two for the server"
    } else {
        "; worker and server threads share two processors, so that the rates cannot show how two workers scale: only \
         that a request costs them no more"
    });
    Ok(Measured { samples: rounds.ratios(0, 1), detail, floor: None })
}
