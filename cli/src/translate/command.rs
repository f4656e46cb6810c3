//! Commands of other tools as operations.

use serde_json::{Value, json};

use crate::draft::Draft;

/// One command of redis-benchmark or valkey-benchmark, with the number of times that it is sent in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    pub weight: u32,
    pub words: Vec<String>,
}

/// Splits valkey-benchmark's sequence `[N] command ... ';' ...`. One command is a sequence of one.
pub fn sequence(words: &[String]) -> Vec<Sequence> {
    let commands = words.split(|word| word == ";").filter(|words| !words.is_empty());
    let several = words.iter().any(|word| word == ";");
    commands
        .map(|words| match words.split_first() {
            Some((first, rest)) if several && !rest.is_empty() && first.parse::<u32>().is_ok_and(|count| count > 0) => {
                Sequence { weight: first.parse().unwrap_or(1), words: rest.to_vec() }
            }
            _ => Sequence { weight: 1, words: words.to_vec() },
        })
        .collect()
}

/// Names for operations: the commands' own, with a number where several are equal.
#[derive(Default)]
pub struct Names(Vec<String>);

impl Names {
    /// A name for `command` that no other operation has.
    pub fn of(&mut self, command: &str) -> String {
        let first = command.split_whitespace().next().unwrap_or_default().to_lowercase();
        let letters = first.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' });
        let name: String = letters.take(24).collect();
        let name = Some(name.trim_matches('-')).filter(|name| !name.is_empty()).unwrap_or("command").to_owned();
        let equal = self.0.iter().filter(|known| **known == name).count();
        self.0.push(name.clone());
        if equal == 0 { name } else { format!("{name}-{}", equal + 1) }
    }
}

/// `words` as the text of `operations[].command`.
pub fn quoted(words: &[String]) -> String {
    let quoted = |word: &String| {
        let plain = !word.is_empty() && !word.chars().any(|letter| letter.is_whitespace() || "\"'\\".contains(letter));
        if plain {
            return word.clone();
        }
        let mut text = String::from('"');
        for letter in word.chars() {
            match letter {
                '"' | '\\' => text.extend(['\\', letter]),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                letter => text.push(letter),
            }
        }
        text.push('"');
        text
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Returns whether `command` begins, ends or watches a transaction.
pub fn delimits_transaction(command: &str) -> bool {
    let name = command.split_whitespace().next().unwrap_or_default().to_uppercase();
    ["MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH"].contains(&name.as_str())
}

/// Sends each operation's requests in transactions of `size` commands, in place of the tool's own.
pub fn set_transaction(size: usize, cluster: bool, draft: &mut Draft) {
    draft.set("workload/transaction/size", size);
    // Keys of different slots are refused.
    draft.set_if("workload/transaction/keys", cluster.then_some("Shared"));
    draft.remark(
        "No counterpart of MULTI, EXEC and WATCH as commands: each transaction has commands of one operation; \
         a script (spec.workload.scripts) runs different ones",
    );
}

/// One entry of `operations`.
pub fn operation(name: &str, weight: u32, command: &str) -> Value {
    json!({"name": name, "weight": weight, "command": command})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn sequences_of_valkey() {
        let of = |weight, text| Sequence { weight, words: words(text) };
        assert_eq!(sequence(&words("set a b")), [of(1, "set a b")]);
        assert_eq!(sequence(&words("3 get a ; del a ;")), [of(3, "get a"), of(1, "del a")]);
    }

    #[test]
    fn names_are_labels_and_different() {
        let mut names = Names::default();
        let told = ["GET a", "get b", "JSON.SET x", "__monitor_line1__", ""].map(|command| names.of(command));
        assert_eq!(told, ["get", "get-2", "json-set", "monitor-line1", "command"]);
    }

    #[test]
    fn words_are_quoted_where_they_must_be() {
        let words = ["eval", "return redis.call(\"ping\")\n", "", "a'b", "0"].map(str::to_owned);
        assert_eq!(quoted(&words), r#"eval "return redis.call(\"ping\")\n" "" "a'b" 0"#);
    }
}
