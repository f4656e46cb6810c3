//! Which slot of a cluster a command belongs to.

use super::field::{self, Field, Item};
use crate::cluster::{NumberedSlots, SLOTS, crc16, hashed_part, slot_of};
use crate::workload::keys::KeySpace;

/// How the slot of a command follows from its key.
#[derive(Debug)]
pub(super) enum SlotRule {
    /// No argument looks like a key.
    Any,
    /// A hash tag or a fixed key decides.
    Fixed(u16),
    /// The number of the first key counts.
    Number(NumberedSlots),
    /// All of this counts.
    Items(Box<[Item]>),
}

impl SlotRule {
    /// By the first argument with a key in it: the others of a command are in the same slot, or it would not have been
    /// planned. A command without one is taken to name its key in its first argument, as nearly all do; where that is
    /// wrong the cluster's redirect says so.
    pub(super) fn new(arguments: &[Vec<Item>], keys: &KeySpace) -> Self {
        let has_key = |items: &&Vec<Item>| {
            items.iter().any(|item| matches!(item, Item::Field(Field::Key | Field::NthKey { .. })))
        };
        match arguments.iter().find(has_key).or(arguments.get(1)) {
            Some(items) if !items.iter().any(|item| matches!(item, Item::Field(Field::Value))) => Self::of(items, keys),
            _ => Self::Any,
        }
    }

    fn of(items: &[Item], keys: &KeySpace) -> Self {
        // One byte for each field: none of them writes a brace.
        let bytes: Vec<u8> = items
            .iter()
            .flat_map(|item| match item {
                Item::Text(text) => text.clone(),
                Item::Field(_) => vec![b'0'],
            })
            .collect();
        let (start, end) = hashed_part(&bytes);
        let mut hashed: Vec<Item> = Vec::new();
        let mut at = 0;
        for item in items {
            match item {
                Item::Text(text) => {
                    let own = start.clamp(at, at + text.len())..end.clamp(at, at + text.len());
                    if !own.is_empty() {
                        hashed.push(Item::Text(bytes[own].to_vec()));
                    }
                    at += text.len();
                }
                Item::Field(field) => {
                    if (start..end).contains(&at) {
                        hashed.push(Item::Field(*field));
                    }
                    at += 1;
                }
            }
        }
        let fields = hashed.iter().filter(|item| matches!(item, Item::Field(_))).count();
        let key = hashed.iter().position(|item| matches!(item, Item::Field(Field::Key)));
        match (fields, key) {
            (0, _) => Self::Fixed(slot_of(&bytes)),
            (1, Some(at)) => {
                let text = |items: &[Item]| -> Vec<u8> {
                    items
                        .iter()
                        .flat_map(|item| if let Item::Text(text) = item { text.clone() } else { Vec::new() })
                        .collect()
                };
                let (before, after) = (text(&hashed[..at]), text(&hashed[at + 1..]));
                let key = [before.as_slice(), &vec![b'0'; keys.width()], &after].concat();
                Self::Number(NumberedSlots::new(&key, before.len(), keys.width()))
            }
            _ => Self::Items(hashed.into()),
        }
    }
}

/// The slot of a key of these pieces in request `k`.
#[inline(never)]
pub(super) fn of_items(items: &[Item], k: u64, keys: &KeySpace) -> u16 {
    let mut room = [0; field::LONGEST];
    let crc = items.iter().fold(0, |crc, item| match item {
        Item::Text(text) => crc16(crc, text),
        Item::Field(field) => {
            let length = field.write_number(k, keys, &mut room);
            crc16(crc, &room[..length])
        }
    });
    crc % SLOTS as u16
}
