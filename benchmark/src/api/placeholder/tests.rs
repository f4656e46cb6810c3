use super::*;
use crate::api::command::parse;
use crate::api::keys::TagsSpec;

fn text(text: &str) -> Part {
    Part::Literal(text.into())
}

fn read(argument: &str) -> Result<Vec<Part>, CommandError> {
    parts(argument, Meaning { ttl: Some((10, 60)), scripts: &[] })
}

#[test]
fn placeholders_within_arguments() {
    assert_eq!(read("a:__key__:b").unwrap(), [text("a:"), Part::Key, text(":b")]);
    assert_eq!(read("___key___").unwrap(), [text("_"), Part::Key, text("_")]);
    assert_eq!(read("__key____data__").unwrap(), [Part::Key, Part::Data]);
    for plain in ["__", "____", "_key_", "__init", "a__b", "__KEY__", "__a b__", "__1__", "", "__é__"] {
        assert_eq!(read(plain).unwrap(), [text(plain)]);
    }
}

#[test]
fn each_placeholder_is_read() {
    let cases = [
        ("__key:1__", Part::Key),
        ("__key:2__", Part::NthKey(2)),
        ("__key:100__", Part::NthKey(100)),
        ("__integer:-5:5__", Part::Integer { least: -5, most: 5, width: 0 }),
        ("__integer:0:9223372036854775807__", Part::Integer { least: 0, most: i64::MAX, width: 0 }),
        ("__sequence__", Part::Sequence),
        ("__score__", Part::Score),
        ("__integer:000:999__", Part::Integer { least: 0, most: 999, width: 3 }),
        ("__integer:007:12__", Part::Integer { least: 7, most: 12, width: 3 }),
        ("__ttl__", Part::Integer { least: 10, most: 60, width: 0 }),
    ];
    for (written, expected) in cases {
        assert_eq!(read(written).unwrap(), [expected], "{written}");
    }
}

#[test]
fn what_is_no_placeholder_is_named() {
    for word in ["__field__", "__rand_int__", "__rand_1st__", "__keys__", "__ttl-ms__", "__key2__"] {
        let error = read(&format!("x{word}")).unwrap_err();
        assert_eq!(error, CommandError::UnknownPlaceholder(word.into()));
        assert!(error.to_string().starts_with(&format!("has the unknown placeholder {word}: supported are __key__, ")));
    }
    let bad = [
        ("__key:0__", "__key:1__ to"),
        ("__key:101__", "__key:1__ to"),
        ("__key:x__", "__key:1__ to"),
        ("__integer__", "__integer:FIRST:LAST__"),
        ("__integer:1__", "__integer:FIRST:LAST__"),
        ("__integer:5:1__", "__integer:FIRST:LAST__"),
        ("__integer:00:100__", "__integer:FIRST:LAST__"),
        ("__integer:000000000000000000000:1__", "__integer:FIRST:LAST__"),
        ("__integer:0:9223372036854775808__", "__integer:FIRST:LAST__"),
        ("__integer:-9223372036854775808:9223372036854775807__", "__integer:FIRST:LAST__"),
        ("__data:2__", "without a colon"),
    ];
    for (word, wanted) in bad {
        let message = read(word).unwrap_err().to_string();
        assert!(message.starts_with(&format!("has {word}, which must be {wanted}")), "{message}");
    }
    assert_eq!(parts("__ttl__", Meaning::default()), Err(CommandError::NoTtl));
}

#[test]
fn keys_that_share_a_slot_are_told_from_those_that_may_not() {
    let spaced = |command: &str, keys: &KeysSpec| share_a_slot(&parse(command, None).unwrap(), keys);
    let share =
        |command: &str, prefix: &str| spaced(command, &KeysSpec { prefix: prefix.into(), ..KeysSpec::default() });
    let those_that_do = [
        ("GET __key__", "rb:"),
        ("PING", "rb:"),
        ("MGET __key__ __key__", "rb:"),
        ("MGET __key__ __key:2__", "{rb}:"),
        ("COPY {__key__}:a {__key__}:b", "rb:"),
        ("COPY __key__ {__key__}:copy", "rb:"),
        ("COPY {u}:__key__ {u}:__key:2__", "rb:"),
        ("COPY {__sequence__}:__key__ {__sequence__}:__key:2__", "rb:"),
    ];
    for (command, prefix) in those_that_do {
        assert!(share(command, prefix), "{command} with {prefix}");
    }
    let those_that_may_not = [
        ("MGET __key__ __key:2__", "rb:"),
        ("COPY __key__ {x}__key__", "rb:"),
        ("COPY __key__ __key__:copy", "rb:"),
        ("COPY {__key__}:a {__key:2__}:b", "rb:"),
        ("MGET __key__ __key:2__", "{}:"),
        ("COPY {__integer:1:9__}__key__ {__integer:1:9__}__key__", "rb:"),
    ];
    for (command, prefix) in those_that_may_not {
        assert!(!share(command, prefix), "{command} with {prefix}");
    }
    let tagged = KeysSpec { tags: Some(TagsSpec { count: 10, hot: None }), ..KeysSpec::default() };
    for (command, expected) in [
        ("MGET __key__ __key:2__ __key__:a", true),
        ("COPY {u}:__key__ {u}:__key:2__", true),
        ("MGET {__key__}:a {__key:2__}:b", true),
        ("MGET __key__ {__key:2__}:b", false),
        ("COPY __key__ {x}__key:2__", false),
    ] {
        assert_eq!(spaced(command, &tagged), expected, "{command}");
    }
}
