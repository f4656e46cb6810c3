//! A request's command, as arguments: libraries encode it themselves.

use std::ops::Range;

use redisbench_loadgen::workload::Workload;

/// Room for one command, used again for the next.
#[derive(Debug)]
pub struct Command {
    room: Vec<u8>,
    length: usize,
    arguments: Vec<Range<usize>>,
    operation: usize,
}

impl Command {
    /// Room for any command of `workload`.
    pub fn new(workload: &Workload) -> Self {
        let room = vec![0; workload.longest() + Workload::SLACK];
        Self { room, length: 0, arguments: Vec::new(), operation: 0 }
    }

    /// Becomes the command of request `k`, which belongs to `operation`.
    pub fn become_request(&mut self, workload: &Workload, k: u64, operation: u16) {
        self.length = workload.encode_any(k, operation, &mut self.room);
        self.operation = operation.into();
        self.arguments.clear();
        split(&self.room[..self.length], &mut self.arguments);
    }

    /// As it is sent.
    pub fn bytes(&self) -> &[u8] {
        &self.room[..self.length]
    }

    /// Its name and arguments.
    pub fn arguments(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.arguments.iter().map(|argument| &self.room[argument.clone()])
    }

    /// The index of its operation.
    pub fn operation(&self) -> usize {
        self.operation
    }
}

/// Adds the places of the arguments of an encoded command to `arguments`: `*N`, and for each its length and bytes.
fn split(command: &[u8], arguments: &mut Vec<Range<usize>>) {
    let line = |from: usize| {
        let end = from + command.get(from..)?.windows(2).position(|pair| pair == b"\r\n")?;
        let number = std::str::from_utf8(command.get(from + 1..end)?).ok()?.parse::<usize>().ok()?;
        Some((number, end + 2))
    };
    let Some((count, mut at)) = line(0) else { return };
    for _ in 0..count {
        let Some((length, begin)) = line(at) else { return };
        arguments.push(begin..begin + length);
        at = begin + length + 2;
    }
}

#[cfg(test)]
mod tests {
    use redisbench_wire::plan::TrialPlan;

    use super::*;

    #[test]
    fn arguments_are_split_whatever_bytes_they_have() {
        let command = b"*3\r\n$3\r\nSET\r\n$5\r\na\r\nb\n\r\n$0\r\n\r\n";
        let mut places = Vec::new();
        split(command, &mut places);
        let arguments: Vec<&[u8]> = places.into_iter().map(|place| &command[place]).collect();
        assert_eq!(arguments, [&b"SET"[..], b"a\r\nb\n", b""]);
    }

    #[test]
    fn a_request_is_the_engines() {
        let plan = TrialPlan::basic("redis:6379").of_shard(0);
        let workload = Workload::of_trial(&plan).unwrap();
        let mut command = Command::new(&workload);
        for k in [7, 3] {
            command.become_request(&workload, k, 0);
            assert_eq!(command.bytes(), workload.command(k, 0));
            assert_eq!(command.arguments().next().unwrap(), b"GET");
            assert_eq!(command.arguments().count(), 2);
        }
    }
}
