//! Deserializers with bounds for lists, text and numbers. Input beyond its bound is refused or cut while it is read, so an answer takes
//! memory in proportion to its bytes, and arithmetic on it cannot overflow.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::limits;

/// A list of at most `MOST` entries.
pub fn list<'de, D, T, const MOST: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct List<T, const MOST: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for List<T, MOST> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(formatter, "a list of at most {MOST} entries")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(entry) = entries.next_element()? {
                if list.len() == MOST {
                    return Err(Error::custom(format_args!("a list of more than {MOST} entries")));
                }
                list.push(entry);
            }
            Ok(list)
        }
    }

    deserializer.deserialize_seq(List::<T, MOST>(PhantomData))
}

/// A name of at most [`limits::NAME_BYTES`]. Longer ones are refused, because a cut name would be another name.
pub fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    short(String::deserialize(deserializer)?)
}

/// Like [`name`], or null.
pub fn optional_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(deserializer)?.map(short).transpose()
}

/// Text for people. Longer text is cut, because the rest of the answer is worth more than its end.
pub fn message<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(cut(String::deserialize(deserializer)?))
}

/// Like [`message`], or null.
pub fn optional_message<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(cut))
}

/// A count of at most [`limits::LARGEST_COUNT`].
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    at_most(u64::deserialize(deserializer)?, limits::LARGEST_COUNT, "a count")
}

/// A reading of a monotonic clock, at most [`limits::LARGEST_INSTANT_NANOSECONDS`].
pub fn instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    at_most(u64::deserialize(deserializer)?, limits::LARGEST_INSTANT_NANOSECONDS, "an instant")
}

/// The number of an attempt, at most [`limits::ATTEMPTS`].
pub fn attempt<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    at_most(u32::deserialize(deserializer)?, limits::ATTEMPTS, "an attempt")
}

fn at_most<N: PartialOrd + Copy + fmt::Display, E: Error>(number: N, most: N, what: &str) -> Result<N, E> {
    if number > most {
        return Err(E::custom(format_args!("{what} of {number}, beyond {most}")));
    }
    Ok(number)
}

fn short<E: Error>(name: String) -> Result<String, E> {
    if name.len() > limits::NAME_BYTES {
        return Err(E::custom(format_args!("a name of {} bytes, beyond {}", name.len(), limits::NAME_BYTES)));
    }
    Ok(name)
}

fn cut(text: String) -> String {
    if text.len() <= limits::NAME_BYTES { text } else { text[..limits::edge(&text, limits::NAME_BYTES)].to_owned() }
}
