//! The commands of a recording, encoded before the load.

use std::fmt;

use redisbench_wire::plan;

use super::rng::{LANES, RandomStream};
use super::template::slot_of_words;
use crate::resp::{append_argument, append_header};

/// The commands of a recording. Request k is command k modulo their number.
pub(super) struct Recorded {
    /// All commands as they are sent, one after the other.
    bytes: Box<[u8]>,
    commands: Box<[Command]>,
    /// Of each command.
    lanes: Box<[u64]>,
    longest: usize,
}

#[derive(Clone, Copy, Debug)]
struct Command {
    /// Its place in the bytes.
    start: usize,
    end: usize,
    operation: u16,
    /// The cluster slot of its first key, if it has one.
    slot: Option<u16>,
}

impl Recorded {
    pub(super) fn new(recorded: &plan::Recorded, seed: u64) -> Self {
        let stream = RandomStream::new(seed, LANES);
        let (mut bytes, mut commands, mut lanes) = (Vec::new(), Vec::new(), Vec::new());
        for (index, command) in (0_u64..).zip(recorded.commands()) {
            let start = bytes.len();
            append_header(&mut bytes, command.arguments.len());
            command.arguments.iter().for_each(|argument| append_argument(&mut bytes, argument));
            let slot = slot_of_words(&command.arguments);
            commands.push(Command { start, end: bytes.len(), operation: command.operation, slot });
            // Commands without a key have any order.
            lanes.push(slot.map_or_else(|| stream.own(index).at(0), |slot| stream.at(slot.into())));
        }
        let longest = commands.iter().map(|command| command.end - command.start).max().unwrap_or_default();
        Self { bytes: bytes.into(), commands: commands.into(), lanes: lanes.into(), longest }
    }

    /// The place of request `k` in the recording.
    #[inline]
    fn place(&self, k: u64) -> usize {
        (k % self.commands.len().max(1) as u64) as usize
    }

    #[inline]
    pub(super) fn operation(&self, k: u64) -> u16 {
        self.commands[self.place(k)].operation
    }

    #[inline]
    pub(super) fn slot(&self, k: u64) -> Option<u16> {
        self.commands[self.place(k)].slot
    }

    #[inline]
    pub(super) fn lane(&self, k: u64) -> u64 {
        self.lanes[self.place(k)]
    }

    pub(super) fn lanes(&self) -> &[u64] {
        &self.lanes
    }

    pub(super) fn command(&self, k: u64) -> &[u8] {
        let Command { start, end, .. } = self.commands[self.place(k)];
        &self.bytes[start..end]
    }

    /// Writes request `k` to the beginning of `room`, and returns its length.
    #[inline(never)]
    pub(super) fn encode(&self, k: u64, room: &mut [u8]) -> usize {
        let command = self.command(k);
        room[..command.len()].copy_from_slice(command);
        command.len()
    }

    pub(super) fn longest(&self) -> usize {
        self.longest
    }
}

/// The commands may be secret.
impl fmt::Debug for Recorded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} recorded commands", self.commands.len())
    }
}

#[cfg(test)]
mod tests {
    use redisbench_wire::plan::Trace;

    use super::*;
    use crate::cluster::slot_of;
    use crate::resp::append_command;
    use crate::sample;
    use crate::workload::Workload;

    #[test]
    fn commands_are_sent_as_they_were_recorded() {
        let text = b"1.000000 [0 a:1] \"set\" \"{user}:1\" \"\\x00\\r\\n\"\n\
                     1.000000 [0 a:1] \"ping\"\n\
                     1.000000 [0 a:1] \"eval\" \"return 1\" \"1\" \"{user}:2\"\n\
                     1.000000 [0 a:1] \"ping\"\n";
        let mut plan = sample::plan();
        plan.trace = Some(Trace { repeats: true, recorded: None });
        plan.replay(plan::Recorded::of_monitor(text, u64::MAX).unwrap());
        let workload = Workload::of_trial(&plan).unwrap();
        let mut expected = Vec::new();
        append_command(&mut expected, &[b"set", b"{user}:1", b"\x00\r\n"]);
        for k in [0, 4, 8] {
            let mut room = vec![b'x'; workload.longest() + Workload::SLACK];
            let length = workload.encode([k], workload.operation(k), &mut room);
            assert_eq!((&room[..length], workload.command(k, 0)), (expected.as_slice(), expected.clone()));
            assert_eq!(workload.encode_any(k, 0, &mut room), length);
        }
        assert_eq!([0, 1, 2, 3, 4].map(|k| workload.operation(k)), [0, 1, 2, 1, 0]);
        assert_eq!([0, 2].map(|k| workload.slot(k, workload.operation(k))), [slot_of(b"user"); 2]);
        let lanes = [0, 1, 2, 3].map(|k| workload.lane(k).unwrap());
        assert!(lanes[0] == lanes[2] && lanes[1] != lanes[3], "keys have lanes of their own: {lanes:?}");
        let shown = format!("{:?}", workload.recorded.unwrap());
        assert_eq!(shown, "4 recorded commands");
    }
}
