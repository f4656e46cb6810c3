//! The cluster slot of a command.

use super::field::{self, Field, Item};
use crate::cluster::{NumberedSlots, SLOTS, SlotHash, crc16, hashed_part, slot_of};
use crate::workload::keys::KeySpace;

/// The rule by which the slot of a command follows from its key.
#[derive(Debug)]
pub(super) enum SlotRule {
    /// No argument looks like a key.
    Any,
    /// A hash tag or a fixed key decides.
    Fixed(u16),
    /// The number of the first key decides.
    Number(NumberedSlots),
    /// All of these pieces decide.
    Items(Box<[Item]>),
    /// The key consists of these pieces. Some are lines of a file, which may contain braces.
    Text(Box<[Item]>),
    /// The rule applies to the first command of a request.
    OfFirst(Box<SlotRule>),
}

impl SlotRule {
    /// Uses the first key that the command declares, otherwise the first argument with a key in it. The other keys are in the same slot;
    /// other plans are refused. A command without a key placeholder is assumed to have its key where that command usually has it, for
    /// most the first argument. If that is wrong, the cluster replies with a redirect.
    pub(super) fn new(arguments: &[Vec<Item>], keys: &KeySpace) -> Self {
        match deciding(arguments) {
            Some(items) if !items.iter().any(|item| matches!(item, Item::Field(Field::Value))) => Self::of(items, keys),
            _ => Self::Any,
        }
    }

    fn of(items: &[Item], keys: &KeySpace) -> Self {
        if keys.lines().is_some() {
            return Self::Text(items.into());
        }
        // One byte per field, because no field contains a brace.
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

/// The argument whose key decides.
fn deciding(arguments: &[Vec<Item>]) -> Option<&Vec<Item>> {
    let has_key =
        |items: &&Vec<Item>| items.iter().any(|item| matches!(item, Item::Field(Field::Key | Field::NthKey { .. })));
    match declared(arguments) {
        Some(0) => None,
        Some(_) => arguments.get(3),
        None => arguments.iter().find(has_key).or(arguments.get(first_key(arguments))),
    }
}

/// The slot of a command without placeholders, by the same rule; `None` if no argument looks like a key.
pub(crate) fn slot_of_words(arguments: &[Vec<u8>]) -> Option<u16> {
    let arguments: Vec<Vec<Item>> = arguments.iter().map(|word| vec![Item::Text(word.clone())]).collect();
    match deciding(&arguments)?.as_slice() {
        [Item::Text(key)] => Some(slot_of(key)),
        _ => None,
    }
}

/// The number of keys that the command declares, for EVAL, FCALL and their variants.
fn declared(arguments: &[Vec<Item>]) -> Option<usize> {
    const COUNTED: [&str; 6] = ["EVAL", "EVALSHA", "EVALSHA_RO", "EVAL_RO", "FCALL", "FCALL_RO"];
    COUNTED.contains(&text(arguments.first()?)?.to_ascii_uppercase().as_str()).then_some(())?;
    text(arguments.get(2)?)?.parse().ok()
}

/// The index of the first key of a command without a key placeholder.
fn first_key(arguments: &[Vec<Item>]) -> usize {
    const SECOND: [&str; 13] = [
        "BITOP",
        "LMPOP",
        "MEMORY",
        "OBJECT",
        "SINTERCARD",
        "XGROUP",
        "XINFO",
        "ZDIFF",
        "ZINTER",
        "ZINTERCARD",
        "ZMPOP",
        "ZUNION",
        "DEBUG",
    ];
    let word = |at: usize| arguments.get(at).and_then(|items| text(items)).unwrap_or_default().to_ascii_uppercase();
    let name = word(0);
    match name.as_str() {
        "BLMPOP" | "BZMPOP" => 3,
        "XREAD" | "XREADGROUP" => (1..arguments.len()).find(|at| word(*at) == "STREAMS").map_or(1, |at| at + 1),
        name if SECOND.contains(&name) => 2,
        _ => 1,
    }
}

fn text(items: &[Item]) -> Option<&str> {
    match items {
        [Item::Text(text)] => std::str::from_utf8(text).ok(),
        _ => None,
    }
}

/// The slot of a key of these pieces, hash tag and all, in request `k`.
#[inline(never)]
pub(super) fn of_text(items: &[Item], k: u64, keys: &KeySpace) -> u16 {
    let mut room = [0; field::LONGEST];
    let mut hash = SlotHash::default();
    for item in items {
        match item {
            Item::Text(text) => hash.add(text),
            Item::Field(field) => {
                if let Some(line) = field.line(k, keys) {
                    hash.add(line);
                } else {
                    let length = field.write_number(k, keys, &mut room);
                    hash.add(&room[..length]);
                }
            }
        }
    }
    hash.slot()
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
