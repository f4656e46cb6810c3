//! Mutates valid documents into hostile ones. The same seed gives the same input.

use serde_json::{Map, Number, Value, json};

/// A random number generator with a fixed sequence on all platforms and versions: `SplitMix64`.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % (end.max(1) as u64)).unwrap_or(0)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).cloned()
    }
}

/// Numbers at the bounds of types.
const NUMBERS: [u64; 14] = [
    0,
    1,
    2,
    127,
    65_536,
    1 << 20,
    (1 << 31) - 1,
    1 << 32,
    1 << 52,
    (1 << 53) + 1,
    600_000_000_001,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Replacements for numbers that are not numbers, or too large for any type.
const NUMBER_TEXTS: [&str; 9] = [
    "-1",
    "NaN",
    "1e999",
    "-0.0",
    "1.5",
    "18446744073709551616",
    "-9223372036854775809",
    "99999999999999999999999999999999999999999",
    "1e-400",
];

/// Makes `seed` hostile. Changes the structure of valid JSON; changes bytes in some of that, and in all other input.
/// `words` are texts with a meaning for the reader.
pub fn mutate(seed: &[u8], words: &[String], random: &mut Random) -> Vec<u8> {
    let mut bytes = match serde_json::from_slice::<Value>(seed) {
        Ok(mut document) if !random.once_in(8) => {
            for _ in 0..=random.below(4) {
                mutate_somewhere(&mut document, words, random);
            }
            let mut bytes = document.to_string().into_bytes();
            if random.once_in(3) {
                mutate_text(&mut bytes, random);
            }
            bytes
        }
        _ => {
            let mut bytes = seed.to_vec();
            for _ in 0..=random.below(6) {
                mutate_bytes(&mut bytes, words, random);
            }
            bytes
        }
    };
    if random.once_in(20) {
        bytes.truncate(random.below(bytes.len()));
    }
    bytes
}

/// Changes one value of `document`, wherever it is.
pub fn mutate_somewhere(document: &mut Value, words: &[String], random: &mut Random) {
    let mut chosen = random.below(count(document));
    if let Some(value) = find(document, &mut chosen) {
        mutate_value(value, words, random);
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(entries) => entries.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

fn find<'a>(value: &'a mut Value, chosen: &mut usize) -> Option<&'a mut Value> {
    if *chosen == 0 {
        return Some(value);
    }
    *chosen -= 1;
    match value {
        Value::Array(entries) => entries.iter_mut().find_map(|entry| find(entry, chosen)),
        Value::Object(fields) => fields.values_mut().find_map(|field| find(field, chosen)),
        _ => None,
    }
}

fn mutate_value(value: &mut Value, words: &[String], random: &mut Random) {
    if random.once_in(6) {
        *value = stranger(words, random);
        return;
    }
    match value {
        Value::Number(number) => *number = mutate_number(number, random),
        Value::String(text) => mutate_string(text, words, random),
        Value::Array(entries) => mutate_array(entries, words, random),
        Value::Object(fields) => mutate_object(fields, words, random),
        Value::Bool(truth) => *truth = !*truth,
        Value::Null => *value = stranger(words, random),
    }
}

/// A value of any type.
fn stranger(words: &[String], random: &mut Random) -> Value {
    match random.below(9) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!([]),
        3 => json!({}),
        4 => json!(random.pick(&NUMBERS)),
        5 => json!(-1),
        6 => json!(random.pick(words).unwrap_or_default()),
        7 => (0..random.below(300)).fold(Value::Null, |inner, _| json!([inner])),
        _ => (0..random.below(120)).fold(json!(1), |inner, _| json!({"a": inner})),
    }
}

fn mutate_number(number: &Number, random: &mut Random) -> Number {
    let known = number.as_u64().unwrap_or_default();
    match random.below(6) {
        0 => known.wrapping_add(1).into(),
        1 => known.wrapping_sub(1).into(),
        2 => known.wrapping_mul(2).into(),
        3 => (known ^ (1 << random.below(64))).into(),
        4 => Number::from_f64(-1.5e300).unwrap_or_else(|| 0.into()),
        _ => random.pick(&NUMBERS).unwrap_or_default().into(),
    }
}

fn mutate_string(text: &mut String, words: &[String], random: &mut Random) {
    match random.below(8) {
        0 => text.clear(),
        // Long enough to exceed every bound, without growing each time it is chosen.
        1 => *text = text.repeat(random.below(100_000 / text.len().max(50))),
        2 => *text = "\u{0}\u{1f}\"\\é\u{1f600}".repeat(1 + random.below(500)),
        3 => *text = random.number().to_string(),
        4 => text.push(char::from(u8::try_from(random.below(128)).unwrap_or(0))),
        5 => {
            let mut bytes = std::mem::take(text).into_bytes();
            mutate_bytes(&mut bytes, words, random);
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
        _ => *text = random.pick(words).unwrap_or_default(),
    }
}

fn mutate_array(entries: &mut Vec<Value>, words: &[String], random: &mut Random) {
    let at = random.below(entries.len());
    match random.below(6) {
        0 => entries.clear(),
        1 if !entries.is_empty() => drop(entries.remove(at)),
        2 => entries.reverse(),
        3 => entries.insert(at, stranger(words, random)),
        4 => {
            let entry = random.pick(entries).unwrap_or_default();
            // Long lists of short items, short lists of long ones, to bound the time of a case.
            let most = 100_000 / entry.to_string().len().max(1);
            entries.extend(std::iter::repeat_n(entry, random.below(most)));
        }
        _ => entries.extend(entries.clone().into_iter().take(10)),
    }
}

fn mutate_object(fields: &mut Map<String, Value>, words: &[String], random: &mut Random) {
    let names: Vec<String> = fields.keys().cloned().collect();
    let (one, other) = (random.pick(&names).unwrap_or_default(), random.pick(&names).unwrap_or_default());
    match random.below(5) {
        0 => drop(fields.remove(&one)),
        1 => drop(fields.insert(one, Value::Null)),
        2 => {
            // Copies the value of one field to another.
            let value = fields.get(&other).cloned().unwrap_or_default();
            fields.insert(one, value);
        }
        3 => drop(fields.insert(random.number().to_string(), stranger(words, random))),
        _ => {
            if let Some(value) = fields.remove(&one) {
                fields.insert(one.to_ascii_uppercase(), value);
            }
        }
    }
}

/// JSON that no writer produces: duplicate fields, numbers beyond all types, unbalanced brackets.
fn mutate_text(bytes: &mut Vec<u8>, random: &mut Random) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    match random.below(5) {
        0 => {
            let fields: Vec<&str> = text.split(['{', ',', '}']).filter(|part| part.starts_with('"')).collect();
            let places: Vec<usize> = text.match_indices('{').map(|(at, _)| at + 1).collect();
            if let (Some(field), Some(at)) = (random.pick(&fields), random.pick(&places)) {
                let comma = if text[at..].starts_with('}') { "" } else { "," };
                *bytes = format!("{}{field}{comma}{}", &text[..at], &text[at..]).into_bytes();
            }
        }
        1 | 2 => {
            let places: Vec<usize> =
                text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).take(10_000).collect();
            if let (Some(at), Some(number)) = (random.pick(&places), random.pick(&NUMBER_TEXTS)) {
                let end = text[at..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |length| at + length);
                *bytes = format!("{}{number}{}", &text[..at], &text[end..]).into_bytes();
            }
        }
        3 => {
            let at = random.below(bytes.len());
            let depth = random.below(20_000);
            bytes.splice(at..at, std::iter::repeat_n(b'[', depth));
        }
        _ => mutate_bytes(bytes, &[], random),
    }
}

/// Changes, inserts, removes or repeats bytes.
pub fn mutate_bytes(bytes: &mut Vec<u8>, words: &[String], random: &mut Random) {
    let at = random.below(bytes.len());
    let end = (at + random.below(64)).min(bytes.len());
    match random.below(7) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.pick(&[0, 0x7f, 0x80, 0xff, b'9', b'-', b'\n']).unwrap_or_default();
            }
        }
        2 => drop(bytes.drain(at..end)),
        3 => {
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece.repeat(1 + random.below(20)));
        }
        4 => {
            let word = random.pick(words).unwrap_or_default();
            bytes.splice(at..at, word.into_bytes());
        }
        5 => {
            let number = random.pick(&NUMBERS).unwrap_or_default().to_be_bytes();
            let end = (at + number.len()).min(bytes.len());
            bytes.splice(at..end, number);
        }
        _ => {
            let noise: Vec<u8> = (0..random.below(16)).map(|_| u8::try_from(random.below(256)).unwrap_or(0)).collect();
            bytes.splice(at..at, noise);
        }
    }
}
