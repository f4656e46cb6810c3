//! Placeholders for keys, values and numbers in the arguments of a command.

use redisbench_wire::plan::Part;

use super::keys::KeysSpec;
use super::script::{self, ScriptSpec};

/// All placeholders, for error messages.
pub(super) const KNOWN: &str = "__key__, __key:2__, __data__, __integer:0:99__, __sequence__, __score__, __ttl__ and __script:name__; for the __rand_int__ of \
     redis-benchmark write __key__ or __integer:0:999999__";

/// Maximum number of different keys in one command.
const KEYS: u32 = 100;

/// Maximum number of digits to pad to.
const WIDEST: u32 = 20;

/// Reason why a command is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Only spaces.
    #[error("is empty: write a command, such as GET __key__")]
    Empty,
    /// Unclosed quote.
    #[error("has a quote that is not closed: add the closing {0}")]
    OpenQuote(char),
    /// Something follows a closing quote.
    #[error("has a closing quote without a space after it: quote the whole argument")]
    AfterQuote,
    /// Unknown escape after a backslash.
    #[error("has the unknown escape \\{0} in double quotes: supported are \\\" \\\\ \\n \\r \\t")]
    UnknownEscape(char),
    /// Word between double underscores that is not a placeholder.
    #[error("has the unknown placeholder {0}: supported are {known}", known = KNOWN)]
    UnknownPlaceholder(String),
    /// Placeholder with invalid arguments.
    #[error("has {0}, which must be {1}")]
    BadPlaceholder(String, &'static str),
    /// `__ttl__` without a range in `workload.values.ttl`.
    #[error("has __ttl__, but workload.values.ttl is not set: set it, such as ttl: {{min: 60s, max: 1h}}")]
    NoTtl,
    /// Unknown script.
    #[error(
        "has {0}, but workload.scripts has no such name: add it, such as scripts: [{{name: {1}, source: return 1}}]"
    )]
    NoScript(String, String),
    /// The first argument is not plain text.
    #[error("does not begin with the name of a command: placeholders come after it")]
    NameNotPlain,
    /// Its replies could not be matched to requests.
    #[error("is {0}, which changes the connection or has no single reply, and cannot be part of a load")]
    OfTheConnection(String),
}

/// Values that some placeholders refer to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meaning<'a> {
    /// The range of `__ttl__` in seconds.
    pub ttl: Option<(i64, i64)>,
    /// Scripts for `__script:NAME__`.
    pub scripts: &'a [ScriptSpec],
}

/// Splits an argument into literals and placeholders.
///
/// # Errors
/// If a lower-case word between double underscores is not a placeholder, or not used correctly.
pub(super) fn parts(argument: &str, meaning: Meaning<'_>) -> Result<Vec<Part>, CommandError> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = argument;
    while let Some(at) = rest.find("__") {
        let behind = &rest[at + 2..];
        let word = behind.find("__").map(|end| &behind[..end]).filter(|word| is_word(word));
        let Some(word) = word else {
            // One character further: of three underscores the last two may begin a placeholder.
            literal.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        };
        let part = part(word, meaning)?;
        literal.push_str(&rest[..at]);
        if !literal.is_empty() {
            parts.push(Part::Literal(std::mem::take(&mut literal)));
        }
        parts.push(part);
        rest = &behind[word.len() + 2..];
    }
    literal.push_str(rest);
    if !literal.is_empty() || parts.is_empty() {
        parts.push(Part::Literal(literal));
    }
    Ok(parts)
}

/// Returns whether it looks like a placeholder, known or not.
fn is_word(word: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_:-".contains(&byte);
    word.starts_with(|first: char| first.is_ascii_lowercase()) && word.bytes().all(letter)
}

fn part(word: &str, meaning: Meaning<'_>) -> Result<Part, CommandError> {
    let bad = |wanted| CommandError::BadPlaceholder(format!("__{word}__"), wanted);
    let (name, arguments) = word.split_once(':').map_or((word, None), |(name, arguments)| (name, Some(arguments)));
    Ok(match (name, arguments) {
        ("key", None) => Part::Key,
        ("key", Some(number)) => match number.parse() {
            Ok(1) => Part::Key,
            Ok(number @ 2..=KEYS) => Part::NthKey(number),
            _ => return Err(bad("__key:1__ to __key:100__")),
        },
        ("data", None) => Part::Data,
        ("sequence", None) => Part::Sequence,
        ("score", None) => Part::Score,
        ("script", Some(name)) => Part::Literal(
            script::digest(meaning.scripts, name)
                .ok_or_else(|| CommandError::NoScript(format!("__{word}__"), name.to_owned()))?,
        ),
        ("ttl", None) => {
            meaning.ttl.map(|(least, most)| Part::Integer { least, most, width: 0 }).ok_or(CommandError::NoTtl)?
        }
        ("integer", range) => {
            let range = range.and_then(|range| range.split_once(':')).and_then(|(first, last)| integer(first, last));
            range.ok_or_else(|| bad("__integer:FIRST:LAST__ with two whole numbers, such as __integer:1:1000__"))?
        }
        ("data" | "sequence" | "score" | "ttl", Some(_)) => return Err(bad("without a colon and what follows it")),
        _ => return Err(CommandError::UnknownPlaceholder(format!("__{word}__"))),
    })
}

/// Random number in a range, padded to the width of `from` if that starts with a zero.
fn integer(from: &str, to: &str) -> Option<Part> {
    let least = from.parse::<i64>().ok()?;
    let most = to.parse::<i64>().ok()?;
    let is_padded = from.len() > 1 && from.starts_with('0');
    let width = if is_padded { u32::try_from(from.len()).ok()? } else { 0 };
    let fits = !is_padded || (width <= WIDEST && most.checked_ilog10().unwrap_or(0) < width);
    // All 2^64 of them are one more than can be counted.
    let is_range = least <= most && (least, most) != (i64::MIN, i64::MAX);
    (is_range && fits).then_some(Part::Integer { least, most, width })
}

/// Returns whether all keys of a command are always in the same slot of a Cluster.
pub(super) fn share_a_slot(arguments: &[Vec<Part>], keys: &KeysSpec) -> bool {
    let mut hashed = arguments.iter().filter(|parts| has_key(parts)).map(|parts| hashed_part(parts, keys));
    let Some(first) = hashed.next() else { return true };
    // These are others wherever they stand.
    let drawn = |token: &Token| matches!(token, Token::Part(Part::Integer { .. } | Part::Score | Part::Data));
    hashed.all(|other| other == first && !other.iter().any(drawn))
}

/// Returns whether all commands of a transaction are always in the same slot of a Cluster. Each has its own number, or with `shared_keys`
/// the same.
pub(super) fn stays_in_a_slot(arguments: &[Vec<Part>], keys: &KeysSpec, shared_keys: bool) -> bool {
    // A command without a placeholder for keys names its key in its first argument, as nearly all do.
    let named = arguments.get(1).filter(|_| !arguments.iter().any(|parts| has_key(parts)));
    let differs = |token: &Token| match token {
        Token::Byte(_) => false,
        Token::Tag | Token::Part(Part::Key | Part::NthKey(_)) => !shared_keys,
        Token::Part(_) => true,
    };
    let mut all = arguments.iter().filter(|parts| has_key(parts)).chain(named);
    !all.any(|parts| hashed_part(parts, keys).iter().any(differs))
}

fn has_key(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Key | Part::NthKey(_)))
}

#[derive(Clone, Debug, PartialEq)]
enum Token<'a> {
    Byte(u8),
    /// The number of the request's tag.
    Tag,
    Part(&'a Part),
}

/// The part of a key that determines its slot: the text between the first `{` and the next `}` if not empty, else the whole key.
fn hashed_part<'a>(parts: &'a [Part], keys: &KeysSpec) -> Vec<Token<'a>> {
    let mut tokens: Vec<Token> = Vec::new();
    for part in parts {
        let text = match part {
            Part::Literal(text) => text,
            Part::Key | Part::NthKey(_) => keys.prefix.as_str(),
            _ => "",
        };
        tokens.extend(text.bytes().map(Token::Byte));
        if keys.tags.is_some() && matches!(part, Part::Key | Part::NthKey(_)) {
            tokens.extend([Token::Byte(b'{'), Token::Tag, Token::Byte(b'}')]);
        }
        if !matches!(part, Part::Literal(_)) {
            tokens.push(Token::Part(part));
        }
    }
    let tag = tokens.iter().position(|token| *token == Token::Byte(b'{')).and_then(|open| {
        let length = tokens[open + 1..].iter().position(|token| *token == Token::Byte(b'}'))?;
        (length > 0).then_some(open + 1..open + 1 + length)
    });
    tag.map_or(tokens.clone(), |tag| tokens[tag].to_vec())
}

#[cfg(test)]
mod tests;
