//! Parses `spec.workload.operations[].command`: arguments, quotes and placeholders.

use redisbench_wire::plan::Part;
use redisbench_wire::plan::refused::OF_THE_CONNECTION;

use super::placeholder::{self, CommandError, Meaning};

/// Parses a command without scripts into its name and arguments. `ttl` is the range of `__ttl__` in seconds.
///
/// # Errors
/// If the command is invalid or cannot be part of a load.
pub fn parse(text: &str, ttl: Option<(i64, i64)>) -> Result<Vec<Vec<Part>>, CommandError> {
    parse_by(text, Meaning { ttl, scripts: &[] })
}

/// Parses a command into its name and arguments.
///
/// # Errors
/// If the command is invalid or cannot be part of a load.
pub fn parse_by(text: &str, meaning: Meaning<'_>) -> Result<Vec<Vec<Part>>, CommandError> {
    let arguments: Vec<Vec<Part>> =
        split(text)?.iter().map(|argument| placeholder::parts(argument, meaning)).collect::<Result<_, _>>()?;
    let name = match arguments.first().map(Vec::as_slice) {
        None => return Err(CommandError::Empty),
        Some([Part::Literal(name)]) if !name.is_empty() => name.to_ascii_uppercase(),
        Some(_) => return Err(CommandError::NameNotPlain),
    };
    let changes_replies = name == "CLIENT"
        && matches!(arguments.get(1).map(Vec::as_slice), Some([Part::Literal(sub)]) if sub.eq_ignore_ascii_case("reply"));
    if changes_replies || OF_THE_CONNECTION.contains(&name.as_str()) {
        return Err(CommandError::OfTheConnection(name));
    }
    Ok(arguments)
}

/// Splits at spaces outside of quotes.
fn split(text: &str) -> Result<Vec<String>, CommandError> {
    let mut arguments = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (argument, after) = match first {
            '"' | '\'' => quoted(first, &rest[1..])?,
            _ => {
                let (argument, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
                (argument.to_owned(), after)
            }
        };
        if after.starts_with(|c: char| !c.is_whitespace()) {
            return Err(CommandError::AfterQuote);
        }
        arguments.push(argument);
        rest = after.trim_start();
    }
    Ok(arguments)
}

/// The argument up to the closing `quote`, and the remaining text.
fn quoted(quote: char, text: &str) -> Result<(String, &str), CommandError> {
    let mut argument = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            _ if character == quote => return Ok((argument, &text[at + 1..])),
            '\\' if quote == '"' => argument.push(match characters.next().map(|(_, escaped)| escaped) {
                Some(escaped @ ('"' | '\\')) => escaped,
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(other) => return Err(CommandError::UnknownEscape(other)),
                None => break,
            }),
            _ => argument.push(character),
        }
    }
    Err(CommandError::OpenQuote(quote))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Vec<Vec<Part>>, CommandError> {
        super::parse(text, None)
    }

    fn text(text: &str) -> Part {
        Part::Literal(text.into())
    }

    #[test]
    fn plain_commands() {
        assert_eq!(parse(" GET  __key__ "), Ok(vec![vec![text("GET")], vec![Part::Key]]));
        assert_eq!(parse("SET __key__ __data__"), Ok(vec![vec![text("SET")], vec![Part::Key], vec![Part::Data]]));
        assert_eq!(parse("ping"), Ok(vec![vec![text("ping")]]));
    }

    #[test]
    fn quotes() {
        let parsed = parse(r#"HSET __key__ '{"a": "\n"}' "b \"\\\n\r\t" "" 'x __data__'"#).unwrap();
        assert_eq!(parsed[2], [text(r#"{"a": "\n"}"#)]);
        assert_eq!(parsed[3], [text("b \"\\\n\r\t")]);
        assert_eq!(parsed[4], [text("")]);
        assert_eq!(parsed[5], [text("x "), Part::Data]);
        assert_eq!(parse("SET a 'b"), Err(CommandError::OpenQuote('\'')));
        assert_eq!(parse("SET a \"b\\"), Err(CommandError::OpenQuote('"')));
        assert_eq!(parse("SET a 'b'c"), Err(CommandError::AfterQuote));
        assert_eq!(parse(r#"SET a "\x00""#), Err(CommandError::UnknownEscape('x')));
        // In the middle of an argument a quote is a letter.
        assert_eq!(parse("ECHO it's").unwrap()[1], [text("it's")]);
    }

    #[test]
    fn what_cannot_be_part_of_a_load() {
        assert_eq!(parse("  "), Err(CommandError::Empty));
        assert_eq!(parse("'' a"), Err(CommandError::NameNotPlain));
        assert_eq!(parse("__key__"), Err(CommandError::NameNotPlain));
        assert_eq!(parse("subscribe news"), Err(CommandError::OfTheConnection("SUBSCRIBE".into())));
        assert_eq!(parse("client reply off"), Err(CommandError::OfTheConnection("CLIENT".into())));
        assert!(parse("CLIENT GETNAME").is_ok());
    }

    proptest! {
        #[test]
        fn a_text_is_a_command_with_a_plain_name_or_refused_in_one_line(
            command in r#"[\PC"'\\_ keydatinger:019-]{0,40}"#,
        ) {
            match parse(&command) {
                Ok(arguments) => {
                    prop_assert!(matches!(&arguments[0][..], [Part::Literal(name)] if !name.is_empty()), "{arguments:?}");
                    // Spaces and quotes apart, arguments hold no more than the text does.
                    prop_assert!(arguments.len() <= command.chars().count());
                    prop_assert_eq!(parse(&format!("  {command} ")), Ok(arguments));
                }
                Err(error) => {
                    let said = error.to_string();
                    prop_assert!(!said.is_empty() && !said.contains('\n'), "{said:?}");
                }
            }
        }

        #[test]
        fn single_quotes_keep_everything(argument in r"[ -&(-\^`-~]{0,40}") {
            prop_assert_eq!(parse(&format!("ECHO '{argument}'")).unwrap()[1].clone(), vec![text(&argument)]);
        }
    }
}
