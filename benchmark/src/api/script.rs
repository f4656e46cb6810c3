//! `spec.workload.scripts` and `spec.workload.functions`. The doc comments are the text of `kubectl explain`.

use redisbench_wire::plan::Part;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use super::patterns::NAME_PATTERN;

/// Commands whose second argument is the number of keys that follow it.
const COUNTED: &[&str] = &["EVAL", "EVALSHA", "EVALSHA_RO", "EVAL_RO", "FCALL", "FCALL_RO"];

/// Lua script or function library. It is loaded into every primary before any load, and again after the target has changed. It remains
/// there after the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScriptSpec {
    /// Name for commands to call a script by, as in EVALSHA `__script:NAME__`: lower-case letters, digits and `-`, at most 32. The name of
    /// a library is in its source; this one only appears in messages.
    #[schemars(length(min = 1, max = 32), pattern(NAME_PATTERN))]
    pub name: String,
    /// Source code, at most 16384 characters. A library begins with a line such as `#!lua name=mylib`, and replaces the library of that
    /// name.
    #[schemars(length(min = 1, max = 16384))]
    pub source: String,
}

/// Hexadecimal SHA-1 of the source of script `name`, which replaces its placeholder. Redis names scripts by it.
pub(super) fn digest(scripts: &[ScriptSpec], name: &str) -> Option<String> {
    let script = scripts.iter().find(|script| script.name == name)?;
    Some(Sha1::digest(&script.source).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Arguments that may be keys: the declared ones of a command that declares them, else all.
///
/// # Errors
/// A message if the declared number of keys is wrong, and how to fix it.
pub(super) fn keys(arguments: &[Vec<Part>]) -> Result<&[Vec<Part>], String> {
    let text = |argument: &[Part]| match argument {
        [Part::Literal(text)] => Some(text.clone()),
        _ => None,
    };
    let name = arguments.first().and_then(|name| text(name)).unwrap_or_default().to_ascii_uppercase();
    if !COUNTED.contains(&name.as_str()) {
        return Ok(arguments);
    }
    let Some(number) = arguments.get(2).and_then(|number| text(number)) else {
        return Err(format!("must have the number of keys as its second argument, such as {name} SCRIPT 1 __key__"));
    };
    let behind = arguments.get(3..).unwrap_or_default();
    match number.parse::<usize>() {
        Ok(count) if count <= behind.len() => Ok(&behind[..count]),
        Ok(count) => Err(format!("declares {count} keys, but only {} arguments follow: correct it", behind.len())),
        Err(_) => Err(format!("must have the number of keys as its second argument, not {number}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::parse;
    use super::*;

    #[test]
    fn scripts_have_the_names_that_redis_gives_them() {
        let script = ScriptSpec { name: "one".into(), source: "return 1".into() };
        assert_eq!(digest(&[script], "one").as_deref(), Some("e0e1f9fabfc9d4800c877a703b823ac0578ff8db"));
    }

    #[test]
    fn keys_are_those_that_are_declared() {
        let read = |command: &str| parse(command, None).unwrap();
        assert_eq!(keys(&read("EVAL script 1 __key__ __data__")), Ok(&[vec![Part::Key]][..]));
        assert_eq!(keys(&read("fcall f 0 __key__")), Ok(&[][..]));
        assert_eq!(keys(&read("GET __key__")).unwrap().len(), 2);
        assert!(keys(&read("EVAL script 2 __key__")).unwrap_err().contains("declares 2 keys, but only 1"));
        assert!(keys(&read("EVAL script __key__")).unwrap_err().contains("the number of keys"));
        assert!(keys(&read("EVALSHA abc one __key__")).unwrap_err().contains("not one"));
    }
}
