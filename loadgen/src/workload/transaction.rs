//! Compound requests, of several commands: a transaction, and WAIT after a transaction or a single command.

use redisbench_wire::plan::WorkloadOptions;

use crate::resp::append_command;

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// The commands of a compound request, which get a reply each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compound {
    /// Commands between MULTI and EXEC; `None` outside a transaction.
    pub transaction: Option<u32>,
    /// Replicas that the WAIT at the end asks for; `None` without one.
    pub replicas: Option<u32>,
}

impl Compound {
    pub fn replies(self) -> u32 {
        self.transaction.map_or(1, |size| size.saturating_add(2)) + u32::from(self.replicas.is_some())
    }
}

/// The commands around those of a request.
#[derive(Clone, Debug)]
pub(super) struct Around {
    pub(super) compound: Compound,
    wait: Box<[u8]>,
}

impl Around {
    /// The commands around those of operation `index`; `None` if its requests are single commands.
    pub(super) fn of(options: &WorkloadOptions, index: usize) -> Option<Self> {
        let transaction = options.transaction.map(|transaction| transaction.size.max(1));
        let waits = options.wait.as_ref().filter(|wait| wait.operations.iter().any(|one| *one as usize == index));
        let mut bytes = Vec::new();
        if let Some(wait) = waits {
            let (replicas, timeout) = (wait.replicas.to_string(), wait.timeout_milliseconds.to_string());
            append_command(&mut bytes, &[b"WAIT", replicas.as_bytes(), timeout.as_bytes()]);
        }
        let compound = Compound { transaction, replicas: waits.map(|wait| wait.replicas) };
        (compound.replies() > 1).then_some(Self { compound, wait: bytes.into() })
    }

    /// The number of the first command of request `k`.
    pub(super) fn first(&self, k: u64) -> u64 {
        k.wrapping_mul(self.compound.transaction.unwrap_or(1).into())
    }

    /// The maximum length of a request in bytes, with commands of at most `command` bytes.
    pub(super) fn longest(&self, command: usize) -> usize {
        let commands = self
            .compound
            .transaction
            .map_or(command, |size| MULTI.len() + EXEC.len() + command.saturating_mul(size as usize));
        commands.saturating_add(self.wait.len())
    }

    /// Writes request `k` to the beginning of `room`, and returns its length. `encode` writes each command by its number.
    pub(super) fn encode(&self, k: u64, room: &mut [u8], mut encode: impl FnMut(u64, &mut [u8]) -> usize) -> usize {
        let first = self.first(k);
        let mut at = 0;
        if let Some(size) = self.compound.transaction {
            at += write(MULTI, room);
            for command in 0..u64::from(size) {
                at += encode(first.wrapping_add(command), &mut room[at..]);
            }
            at += write(EXEC, &mut room[at..]);
        } else {
            at += encode(first, room);
        }
        at + write(&self.wait, &mut room[at..])
    }
}

fn write(bytes: &[u8], room: &mut [u8]) -> usize {
    room[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}
