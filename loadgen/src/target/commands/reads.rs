//! Decides which commands only read, so that a replica may answer them.

use redis::Value;
use redisbench_wire::plan::only_reads;

use super::flags::has_flag;

/// Returns whether each command only reads, by the flags from COMMAND INFO, otherwise by the table.
pub fn reads(names: &[String], answer: &Value) -> Vec<bool> {
    let descriptions = if let Value::Array(descriptions) = answer { descriptions.as_slice() } else { &[] };
    let of = |(at, name): (usize, &String)| descriptions.get(at).and_then(flagged).unwrap_or_else(|| only_reads(name));
    names.iter().enumerate().map(of).collect()
}

/// The server's flag; `None` if it has no flags.
fn flagged(description: &Value) -> Option<bool> {
    let Value::Array(fields) = description else { return None };
    has_flag(fields, "readonly")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str, flags: Option<&[&str]>) -> bool {
        let flags = flags.map(|flags| flags.iter().map(|flag| Value::SimpleString((*flag).into())).collect());
        let described = flags.map(|flags| Value::Array(vec![Value::Nil, Value::Int(2), Value::Array(flags)]));
        let answer = described.map_or(Value::Nil, |described| Value::Array(vec![described]));
        reads(&[name.to_owned()], &answer)[0]
    }

    #[test]
    fn the_server_s_flags_decide() {
        assert!(told("GET", Some(&["readonly", "fast"])));
        assert!(!told("GET", Some(&["write"])), "it may have been renamed");
        assert!(!told("PING", Some(&["fast"])), "neither reads nor writes");
    }

    #[test]
    fn without_flags_a_table_does() {
        assert!(told("get", None) && told("ZRANGE", None));
        assert!(!told("SET", None) && !told("EVAL", None) && !told("GETEX", None));
    }
}
