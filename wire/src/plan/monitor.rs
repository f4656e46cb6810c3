//! The lines of MONITOR: `1339518083.107412 [0 127.0.0.1:60866] "set" "a" "\x00"`.

use super::argument::Part;
use super::recorded::{Recorded, RecordedCommand};
use super::refused::{BLOCKING, BLOCKING_IF, COMMANDS, OF_THE_CONNECTION, SUBCOMMANDS};
use super::workload::Operation;
use crate::limits;

/// The most that the recording machine's clock may be ahead, in microseconds.
const AHEAD: u64 = 3_600_000_000;

/// The longest name of a command.
const NAME: usize = 64;

/// Commands without exactly one reply.
const WITHOUT_REPLY: [&str; 10] = [
    "MONITOR",
    "PSUBSCRIBE",
    "PSYNC",
    "PUNSUBSCRIBE",
    "REPLCONF",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "SUNSUBSCRIBE",
    "SYNC",
    "UNSUBSCRIBE",
];

/// Commands that servers count by their subcommands.
const CONTAINERS: [&str; 15] = [
    "ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "FUNCTION", "LATENCY", "MEMORY", "MODULE", "OBJECT", "PUBSUB",
    "SCRIPT", "SLOWLOG", "XGROUP", "XINFO",
];

/// A line, parsed.
struct Line {
    /// Since 1970.
    microseconds: u64,
    database: u64,
    /// True if a script executed the command. The script's own call has a line too.
    of_script: bool,
    arguments: Vec<Vec<u8>>,
}

/// Why a line cannot be parsed.
enum Fault {
    Format,
    /// An argument does not end.
    Open,
}

/// The use of a recorded command.
enum Use {
    Send,
    LeaveOut,
    /// It cannot be replayed: the reason.
    Refuse(&'static str),
}

impl Recorded {
    /// The commands in `text`, which `redis-cli MONITOR` has printed. `now` is in microseconds since 1970. Commands that scripts executed
    /// and those that only concern their connection, such as AUTH and MULTI, are left out.
    ///
    /// # Errors
    /// Names the line and its problem, without its arguments: these may be secret.
    pub fn of_monitor(text: &[u8], now: u64) -> Result<Self, String> {
        parse(text, now)
    }
}

fn parse(text: &[u8], now: u64) -> Result<Recorded, String> {
    let (mut commands, mut operations) = (Vec::new(), Vec::new());
    let (mut left_out, mut before) = (0, 0);
    let mut first = None;
    for (number, line) in (1_u64..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
        let content = line.trim_ascii();
        // The reply to MONITOR itself.
        if matches!(content, b"" | b"OK" | b"+OK") {
            continue;
        }
        let Line { microseconds, database, of_script, arguments } =
            Line::of(content).map_err(|fault| fault.message(number, line.ends_with(b"\n")))?;
        if microseconds < before {
            let back = seconds(before - microseconds);
            return Err(format!(
                "line {number} is {back} s earlier than the one before it: sort the lines by their first column, or record again"
            ));
        }
        if microseconds > now.saturating_add(AHEAD) {
            return Err(format!(
                "line {number} lies in the future, at {} s since 1970: record again on a machine whose clock is right",
                seconds(microseconds)
            ));
        }
        before = microseconds;
        let Some(name) = arguments.first().and_then(|argument| name(argument)) else {
            return Err(format!("line {number} does not begin with the name of a command: remove it"));
        };
        let becomes = if of_script { Use::LeaveOut } else { of(&name, &arguments) };
        match becomes {
            Use::Send => {}
            Use::LeaveOut => {
                left_out += 1;
                continue;
            }
            Use::Refuse(why) => {
                return Err(format!("line {number}: {name} {why}, and is never replayed: remove such lines"));
            }
        }
        let (began, of_first) = *first.get_or_insert((microseconds, database));
        if database != of_first {
            return Err(format!(
                "line {number} is of database {database}, and the first command of {of_first}: keep the lines of one database"
            ));
        }
        let after_nanoseconds = (microseconds - began).saturating_mul(1_000);
        let operation = operation(&name, &arguments, &mut operations)?;
        commands.push(RecordedCommand { after_nanoseconds, operation, arguments });
    }
    if commands.is_empty() {
        let lines = if left_out == 0 { "is empty" } else { "has only lines that are left out" };
        return Err(format!("the file {lines}: record with redis-cli MONITOR while clients send commands"));
    }
    Ok(Recorded::new(commands, operations, left_out))
}

/// The index of the command's operation, which is added if it is new.
fn operation(name: &str, arguments: &[Vec<u8>], operations: &mut Vec<Operation>) -> Result<u16, String> {
    let mut words = vec![name.to_owned()];
    if CONTAINERS.contains(&name) {
        words.extend(arguments.get(1).map(|argument| upper(argument)));
    }
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let label: String = words.join("-").chars().map(letter).collect();
    if let Some(known) = operations.iter().position(|operation| operation.name == label) {
        return Ok(u16::try_from(known).unwrap_or(u16::MAX));
    }
    if operations.len() == limits::OPERATIONS {
        return Err(format!("the file has more than {} different commands: remove rare ones", limits::OPERATIONS));
    }
    words.resize(arguments.len(), String::new());
    let arguments = words.into_iter().map(|word| vec![Part::Literal(word)]).collect();
    operations.push(Operation { name: label, weight: 1, arguments, keys: None });
    Ok(u16::try_from(operations.len() - 1).unwrap_or(u16::MAX))
}

fn of(name: &str, arguments: &[Vec<u8>]) -> Use {
    let subcommand = arguments.get(1).map(|argument| upper(argument)).unwrap_or_default();
    let of_subcommand = SUBCOMMANDS.iter().filter(|(command, ..)| *command == name);
    let mut harmful = of_subcommand.filter(|(_, of, _)| of.contains(&subcommand.as_str())).map(|(.., what)| *what);
    let harm = COMMANDS.iter().find(|(command, _)| *command == name).map(|(_, what)| *what);
    let blocks = |(command, option): &(&str, &str)| {
        *command == name && arguments.iter().skip(1).any(|argument| argument.eq_ignore_ascii_case(option.as_bytes()))
    };
    if let Some(what) = harm.or_else(|| harmful.next()) {
        Use::Refuse(what)
    } else if BLOCKING.contains(&name) || BLOCKING_IF.iter().any(blocks) {
        Use::Refuse("blocks the requests behind it on its connection")
    } else if WITHOUT_REPLY.contains(&name) {
        Use::Refuse("does not have exactly one reply")
    } else if OF_THE_CONNECTION.contains(&name) || name == "CLIENT" {
        Use::LeaveOut
    } else {
        Use::Send
    }
}

impl Fault {
    fn message(&self, number: u64, has_end: bool) -> String {
        match self {
            Self::Format if has_end => format!(
                "line {number} is not in the format of MONITOR, which is \
                 1339518083.107412 [0 127.0.0.1:60866] \"get\" \"key\": remove it, or record with redis-cli MONITOR"
            ),
            Self::Format | Self::Open => format!("line {number} is cut: remove it, or copy the whole file"),
        }
    }
}

impl Line {
    fn of(content: &[u8]) -> Result<Self, Fault> {
        // As the protocol has it, if the file was not recorded by redis-cli.
        let content = content.strip_prefix(b"+").unwrap_or(content);
        let (time, rest) = split(content, b" [").ok_or(Fault::Format)?;
        // An IPv6 address has brackets of its own.
        let (source, rest) = split(rest, b"] \"").ok_or(Fault::Format)?;
        let (database, client) = split(source, b" ").ok_or(Fault::Format)?;
        let (seconds, fraction) = split(time, b".").ok_or(Fault::Format)?;
        let fraction = number(fraction).filter(|_| fraction.len() == 6).ok_or(Fault::Format)?;
        let whole = number(seconds).and_then(|seconds| seconds.checked_mul(1_000_000)).ok_or(Fault::Format)?;
        Ok(Self {
            microseconds: whole.saturating_add(fraction),
            database: number(database).ok_or(Fault::Format)?,
            of_script: client == b"lua",
            arguments: arguments(rest)?,
        })
    }
}

/// The arguments in `text`, which begins after the first quote.
fn arguments(text: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
    let (mut all, mut argument) = (Vec::new(), Vec::new());
    let mut rest = text;
    loop {
        let (byte, after) = rest.split_first().ok_or(Fault::Open)?;
        rest = after;
        match byte {
            b'"' => {
                all.push(std::mem::take(&mut argument));
                match rest.strip_prefix(b" \"") {
                    Some(next) => rest = next,
                    None if rest.is_empty() => return Ok(all),
                    None => return Err(Fault::Format),
                }
            }
            b'\\' => {
                let (escaped, after) = rest.split_first().ok_or(Fault::Open)?;
                rest = after;
                argument.push(match escaped {
                    b'\\' | b'"' => *escaped,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b'x' => {
                        let (digits, after) = rest.split_at_checked(2).ok_or(Fault::Open)?;
                        rest = after;
                        hexadecimal(digits).ok_or(Fault::Format)?
                    }
                    _ => return Err(Fault::Format),
                });
            }
            _ => argument.push(*byte),
        }
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    digits.iter().try_fold(0, |sum, byte| Some(sum * 16 + digit(byte)?)).and_then(|sum| u8::try_from(sum).ok())
}

/// The parts before and after the first `separator`.
fn split<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(separator.len()).position(|window| window == separator)?;
    Some((&text[..at], &text[at + separator.len()..]))
}

fn number(digits: &[u8]) -> Option<u64> {
    let all = !digits.is_empty() && digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit);
    all.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// A command's name in capitals.
fn name(argument: &[u8]) -> Option<String> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    (!argument.is_empty() && argument.len() <= NAME && argument.iter().all(plain)).then(|| upper(argument))
}

/// The beginning of an argument in capitals.
fn upper(argument: &[u8]) -> String {
    String::from_utf8_lossy(&argument[..argument.len().min(NAME)]).to_ascii_uppercase()
}

fn seconds(microseconds: u64) -> String {
    format!("{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a short text")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// After all lines of these tests.
    const NOW: u64 = 1_800_000_000_000_000;

    fn parsed(text: &str) -> Recorded {
        parse(text.as_bytes(), NOW).unwrap()
    }

    fn refused(text: &str, part: &str) {
        let message = parse(text.as_bytes(), NOW).unwrap_err();
        assert!(message.contains(part), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }

    fn texts(recorded: &Recorded) -> Vec<Vec<String>> {
        let text = |argument: &Vec<u8>| String::from_utf8_lossy(argument).into_owned();
        recorded.commands().iter().map(|command| command.arguments.iter().map(text).collect()).collect()
    }

    #[test]
    fn lines_become_commands_with_their_times() {
        let recorded = parsed(
            "OK\n\
             1339518083.107412 [0 127.0.0.1:60866] \"SET\" \"a b\" \"say \\\"hi\\\" \\\\ \\x00\\xff\\r\\n\\t\\a\\b\"\n\
             1339518083.107412 [0 [::1]:60866] \"get\" \"] \"\n\
             \n\
             1339518084.200000 [0 unix:/run/redis.sock] \"get\" \"\"\r\n\
             +1339518085.207412 [0 127.0.0.1:60866] \"object\" \"encoding\" \"a b\"",
        );
        let times: Vec<u64> = recorded.commands().iter().map(|command| command.after_nanoseconds).collect();
        assert_eq!(times, [0, 0, 1_092_588_000, 2_100_000_000]);
        assert_eq!(recorded.commands()[0].arguments[2], b"say \"hi\" \\ \x00\xff\r\n\t\x07\x08");
        assert_eq!(texts(&recorded)[1..], [vec!["get", "] "], vec!["get", ""], vec!["object", "encoding", "a b"]]);
        let names: Vec<&str> = recorded.operations().iter().map(|operation| operation.name.as_str()).collect();
        assert_eq!(names, ["set", "get", "object-encoding"]);
        let lengths: Vec<usize> = recorded.operations().iter().map(|operation| operation.arguments.len()).collect();
        assert_eq!(lengths, [3, 2, 3]);
        let of: Vec<u16> = recorded.commands().iter().map(|command| command.operation).collect();
        assert_eq!((of, recorded.left_out()), (vec![0, 1, 1, 2], 0));
        assert_eq!(recorded.period_nanoseconds(), 2_800_000_000);
        assert!(!format!("{recorded:?}{:?}", recorded.commands()).contains("say"));
    }

    /// A command's line as a server writes it.
    fn written(arguments: &[Vec<u8>]) -> Vec<u8> {
        let mut line = b"1.000000 [0 127.0.0.1:1]".to_vec();
        for argument in arguments {
            line.extend_from_slice(b" \"");
            for byte in argument {
                match byte {
                    b'\\' | b'"' => line.extend([b'\\', *byte]),
                    b'\n' => line.extend(b"\\n"),
                    0x07 => line.extend(b"\\a"),
                    b' '..=b'~' => line.push(*byte),
                    other => line.extend(format!("\\x{other:02x}").into_bytes()),
                }
            }
            line.push(b'"');
        }
        line.push(b'\n');
        line
    }

    proptest! {
        #[test]
        fn any_arguments_are_read_back_and_any_cut_is_an_error_or_leaves_whole_commands(
            values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..4),
            part in 0.0..1.0_f64,
        ) {
            let command: Vec<Vec<u8>> = [b"set".to_vec()].into_iter().chain(values).collect();
            let text = [written(&command), written(&command)].concat();
            let recorded = parse(&text, NOW).unwrap();
            prop_assert!(recorded.commands().iter().all(|read| read.arguments == command));
            prop_assert_eq!(recorded.commands().len(), 2);
            let cut = (text.len() as f64 * part) as usize;
            if let Ok(left) = parse(&text[..cut], NOW) {
                for read in left.commands() {
                    prop_assert!(command.starts_with(&read.arguments), "{:?}", read.arguments);
                }
            }
        }

        #[test]
        fn no_bytes_are_too_strange(text in prop::collection::vec(any::<u8>(), 0..300)) {
            let line = [b"1.000000 [0 a:1] \"".as_slice(), &text].concat();
            for text in [text, line] {
                if let Err(message) = parse(&text, NOW) {
                    prop_assert!(message.is_ascii(), "{message}");
                }
            }
        }
    }

    #[test]
    fn what_concerns_only_its_connection_is_left_out() {
        let recorded = parsed(
            "1.000000 [0 127.0.0.1:1] \"AUTH\" \"hunter2\"\n\
             1.000000 [0 127.0.0.1:1] \"hello\" \"3\" \"AUTH\" \"bob\" \"hunter2\"\n\
             1.000000 [3 127.0.0.1:1] \"select\" \"0\"\n\
             1.000000 [0 127.0.0.1:1] \"multi\"\n\
             1.500000 [0 127.0.0.1:1] \"evalsha\" \"abc\" \"1\" \"k\"\n\
             1.500000 [0 lua] \"flushall\"\n\
             1.500000 [0 127.0.0.1:1] \"exec\"\n\
             1.600000 [0 127.0.0.1:1] \"client\" \"setinfo\" \"lib-name\" \"x\"\n",
        );
        assert_eq!(texts(&recorded), [["evalsha", "abc", "1", "k"]]);
        assert_eq!((recorded.left_out(), recorded.commands()[0].after_nanoseconds), (7, 0));
        assert_eq!(recorded.period_nanoseconds(), 1_000_000_000, "all have one time");
    }

    #[test]
    fn what_must_not_be_replayed_is_named_with_its_line() {
        for command in [
            "\"flushall\"",
            "\"Config\" \"set\" \"requirepass\" \"hunter2\"",
            "\"CLIENT\" \"KILL\" \"hunter2\"",
            "\"blpop\" \"hunter2\" \"0\"",
            "\"xread\" \"BLOCK\" \"0\" \"STREAMS\" \"hunter2\" \"$\"",
            "\"subscribe\" \"hunter2\"",
            "\"monitor\"",
            "\"sync\"",
        ] {
            let name = command.split('"').nth(1).unwrap().to_uppercase();
            let text = format!("1.000000 [0 a:1] \"get\" \"a\"\n2.000000 [0 a:1] {command}\n");
            refused(&text, &format!("line 2: {name} "));
        }
    }

    #[test]
    fn bad_files_are_told_apart() {
        let line = |time: &str| format!("{time} [0 a:1] \"set\" \"a\" \"hunter2\"\n");
        refused("", "the file is empty");
        refused("OK\n\n", "the file is empty");
        refused("1.000000 [0 a:1] \"auth\" \"hunter2\"\n", "has only lines that are left out");
        refused("1.000000 [0 a:1] \"set\" \"a\" \"hunter2", "line 1 is cut");
        refused("1.000000 [0 a:1] \"set\" \"a\" \"hunter2\\", "line 1 is cut");
        refused("1.000000 [0 a:1] \"set\" \"a\" \"hunter2\\x0", "line 1 is cut");
        refused(&format!("{}1.0000", line("1.000000")), "line 2 is cut");
        let others =
            ["SET a hunter2", "1.0 [0 a:1] \"get\" \"a\"", "1.000000 [x a:1] \"get\" \"a\"", "1.000000 [0 a] get"];
        for other in others {
            refused(&format!("{other}\n"), "line 1 is not in the format of MONITOR");
        }
        refused("1.000000 [0 a:1] \"get\" hunter2\n", "line 1 is not in the format of MONITOR");
        refused("1.000000 [0 a:1] \"get\" \"\\q\"\n", "line 1 is not in the format of MONITOR");
        refused("1.000000 [0 a:1] \"\" \"hunter2\"\n", "line 1 does not begin with the name of a command");
        refused(&(line("9.500000") + &line("8.000000")), "line 2 is 1.500000 s earlier than the one before it");
        refused(&line("1800003601.000000"), "line 1 lies in the future");
        assert_eq!(parsed(&line("1800003599.000000")).commands().len(), 1);
        refused("1.000000 [0 a:1] \"ping\"\n1.000000 [3 a:1] \"ping\"\n", "line 2 is of database 3");
        let many: String = (0..65).map(|number| format!("1.000000 [0 a:1] \"c{number}\"\n")).collect();
        refused(&many, "more than 64 different commands");
    }
}
