//! The general encoding of a command: a sequence of steps that write it.

use super::field::{self, Field, Item};
use crate::resp;
use crate::workload::keys::KeySpace;
use crate::workload::values::Values;

#[derive(Debug)]
pub(super) struct Steps(Box<[Step]>);

#[derive(Debug)]
pub(super) enum Step {
    /// The same in every request.
    Bytes(Box<[u8]>),
    /// The header of an argument of variable length: `fixed` bytes plus the lengths of `fields`.
    Header {
        fixed: usize,
        fields: Box<[Field]>,
    },
    Field(Field),
}

impl Steps {
    pub(super) fn new(arguments: Vec<Vec<Item>>, keys: &KeySpace, values: &Values) -> Self {
        let mut steps = Vec::new();
        let mut open = Vec::new();
        resp::append_header(&mut open, arguments.len());
        for items in arguments {
            let mut fixed = 0;
            let mut fields = Vec::new();
            for item in &items {
                match item {
                    Item::Text(text) => fixed += text.len(),
                    Item::Field(field) => match field.fixed_length(keys, values) {
                        Some(length) => fixed += length,
                        None => fields.push(*field),
                    },
                }
            }
            if fields.is_empty() {
                open.extend_from_slice(format!("${fixed}\r\n").as_bytes());
            } else {
                close(&mut open, &mut steps);
                steps.push(Step::Header { fixed, fields: fields.into() });
            }
            for item in items {
                match item {
                    Item::Text(text) => open.extend_from_slice(&text),
                    Item::Field(field) => {
                        close(&mut open, &mut steps);
                        steps.push(Step::Field(field));
                    }
                }
            }
            open.extend_from_slice(b"\r\n");
        }
        close(&mut open, &mut steps);
        Self(steps.into())
    }

    pub(super) fn all(&self) -> &[Step] {
        &self.0
    }

    /// The number of values.
    pub(super) fn values(&self) -> usize {
        self.0.iter().filter(|step| matches!(step, Step::Field(Field::Value))).count()
    }

    /// The maximum length in bytes.
    pub(super) fn longest(&self, keys: &KeySpace, values: &Values) -> usize {
        let longest = |step: &Step| match step {
            Step::Bytes(bytes) => bytes.len(),
            Step::Field(field) => field.longest(keys, values),
            Step::Header { fixed, fields } => {
                let differing: usize = fields.iter().map(|field| field.longest(keys, values)).sum();
                field::longest_header(fixed + differing)
            }
        };
        self.0.iter().map(longest).sum()
    }

    /// Writes the command of request `k` to the beginning of `room`, and returns its length. `write_value` writes the value of
    /// a request in the same way.
    #[inline(never)]
    pub(super) fn encode(
        &self,
        k: u64,
        keys: &KeySpace,
        values: &Values,
        room: &mut [u8],
        write_value: &mut impl FnMut(u64, &mut [u8]) -> usize,
    ) -> usize {
        let mut at = 0;
        for step in &self.0 {
            let room = &mut room[at..];
            at += match step {
                Step::Bytes(bytes) => {
                    room[..bytes.len()].copy_from_slice(bytes);
                    bytes.len()
                }
                Step::Field(Field::Value) => write_value(k, room),
                Step::Field(field) => field.write(k, keys, room),
                Step::Header { fixed, fields } => {
                    let differing: usize = fields.iter().map(|field| field.length(k, keys, values)).sum();
                    field::write_header(fixed + differing, room)
                }
            };
        }
        at
    }
}

fn close(open: &mut Vec<u8>, steps: &mut Vec<Step>) {
    if !open.is_empty() {
        steps.push(Step::Bytes(std::mem::take(open).into()));
    }
}
