//! Writes the keys that reads have missed. Such a write takes the place of the read on its connection, so their number is bounded by the
//! requests in flight. It is not a request of the schedule, and the load waits for its outcome.

use super::Worker;
use crate::engine::pipeline::{Class, Hops, Request};

impl Worker {
    /// Stages the write of a key whose read was answered with null, if its operation has one.
    #[cold]
    pub(super) fn missed(&mut self, index: usize, request: Request) {
        let Some(run) = &mut self.run else { return };
        let of_load = matches!(request.class, Class::Warmup | Class::Measured);
        if of_load && run.workload.has_fill(request.operation) {
            run.outstanding += 1;
            let fill = Request { class: Class::Fill, hops: Hops::default(), ..request };
            self.connections[index].pipeline.stage(fill);
        }
    }

    /// Sends the writes that were staged while replies were read, unless an earlier flush already sent them.
    #[cold]
    pub(super) fn send_fills(&mut self, index: usize) {
        if self.connections[index].pipeline.staged_count() > 0 {
            self.flush(index);
        }
    }

    /// Counts the outcome of such a write, in the same period as its read.
    #[cold]
    pub(super) fn filled(&mut self, request: &Request, is_error: bool) {
        let Some(run) = &mut self.run else { return };
        run.outstanding -= 1;
        if request.due < run.measure_from {
            let warmup = &mut self.recording.warmup;
            *(if is_error { &mut warmup.fill_errors } else { &mut warmup.fills }) += 1;
        } else {
            self.recording.filled(request.operation, is_error);
        }
    }
}
