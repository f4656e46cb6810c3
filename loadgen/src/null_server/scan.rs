//! Finds the ends of commands in a byte stream, however it is split into reads. Keeps only the beginnings of a command's first two words.
//!
//! The commands of a load differ only in key and value. The common bytes are remembered, and a command that matches them is not parsed at
//! all.

use std::ops::Range;

use super::replies::Want;

/// Redis's own limits.
const MOST_ARGUMENTS: usize = 1 << 20;
const LARGEST_ARGUMENT: usize = 512 << 20;
const LONGEST_INLINE: usize = 64 << 10;

/// The longest second word that changes the reply, such as SLOTS.
const LONGEST_SECOND: usize = 5;

/// The most digits of a number within the limits.
const DIGITS: usize = 9;

/// A protocol error, with Redis's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken(pub &'static str);

/// The position in a connection's stream.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// The command that the last read split.
    partial: Option<Box<PartialCommand>>,
}

impl Scanner {
    /// Reports the reply kinds of all commands that end in `input`, in order, each with the length of its run.
    pub(super) fn scan(
        &mut self,
        mut input: &[u8],
        shapes: &mut Shapes,
        mut found: impl FnMut(Want, u32),
    ) -> Result<(), Broken> {
        while !input.is_empty() {
            if self.partial.is_none() {
                if let Some((want, count, used)) = shapes.alike(input) {
                    found(want, count);
                    input = &input[used..];
                    continue;
                }
                if let Some((want, used)) = whole(input, shapes) {
                    found(want, 1);
                    input = &input[used..];
                    continue;
                }
            }
            let partial = self.partial.get_or_insert_default();
            let Some(used) = partial.go_on(input)? else { return Ok(()) };
            if partial.is_command() {
                found(partial.want(), 1);
            }
            self.partial = None;
            input = &input[used..];
        }
        Ok(())
    }
}

/// The common bytes of the last two kinds of commands, from any connection.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    known: [Option<Shape>; 2],
    /// Index of the one to replace next.
    older: usize,
}

/// A command without its key and value. Any command of the same length and with the same other bytes matches.
#[derive(Debug)]
struct Shape {
    want: Want,
    length: usize,
    /// The bytes before the key.
    head: Beginning<48>,
    /// The bytes between key and value.
    middle: Beginning<16>,
    middle_at: usize,
}

impl Shape {
    #[inline]
    fn fits(&self, input: &[u8]) -> bool {
        let (head, middle) = (self.head.bytes(), self.middle.bytes());
        input.len() >= self.length
            && input[..head.len()] == *head
            && input[self.middle_at..self.middle_at + middle.len()] == *middle
    }
}

impl Shapes {
    /// The reply kind, number and total length of the matching commands at the start of `input`.
    #[inline]
    fn alike(&self, input: &[u8]) -> Option<(Want, u32, usize)> {
        for shape in self.known.iter().flatten() {
            let (mut count, mut at) = (0, 0);
            while shape.fits(&input[at..]) {
                count += 1;
                at += shape.length;
            }
            if count > 0 {
                return Some((shape.want, count, at));
            }
        }
        None
    }

    /// Remembers a command by the positions of its key and its value, if it has one.
    fn remember(&mut self, want: Want, command: &[u8], key: Range<usize>, value: Option<Range<usize>>) {
        let middle = value.map_or(0..0, |value| key.end..value.start);
        // A word this long is never a subcommand that changes the reply, so it is a key.
        if key.len() <= LONGEST_SECOND || key.start > 48 || middle.len() > 16 {
            return;
        }
        let mut shape = Shape {
            want,
            length: command.len(),
            head: Beginning::default(),
            middle: Beginning::default(),
            middle_at: middle.start,
        };
        shape.head.extend(&command[..key.start]);
        shape.middle.extend(&command[middle]);
        self.known[self.older] = Some(shape);
        self.older = 1 - self.older;
    }
}

/// The command at the start of `input` and its length. `None` if it is incomplete or unusual: see [`PartialCommand`].
#[inline]
fn whole(input: &[u8], shapes: &mut Shapes) -> Option<(Want, usize)> {
    let (arguments, mut at) = number(input, 0, b'*')?;
    let mut words = [0..0, 0..0, 0..0];
    for index in 0..arguments {
        let (length, begin) = number(input, at, b'$')?;
        let end = begin + length;
        at = end + 2;
        if input.len() < at {
            return None;
        }
        if index < words.len() {
            words[index] = begin..end;
        }
    }
    if arguments == 0 {
        return None;
    }
    let [name, second, third] = words;
    let want = Want::of(&input[name], &input[second.clone()]);
    if arguments == 2 || arguments == 3 {
        shapes.remember(want, &input[..at], second, (arguments == 3).then_some(third));
    }
    Some((want, at))
}

/// The number after `mark`, and where the next line begins.
#[inline]
fn number(input: &[u8], at: usize, mark: u8) -> Option<(usize, usize)> {
    let line = input.get(at..)?;
    let (&first, digits) = line.split_first()?;
    if first != mark {
        return None;
    }
    let mut value = 0;
    for (index, byte) in digits.iter().enumerate().take(DIGITS) {
        match byte {
            b'0'..=b'9' => value = value * 10 + usize::from(byte - b'0'),
            b'\r' if index > 0 && digits.get(index + 1) == Some(&b'\n') => return Some((value, at + index + 3)),
            _ => return None,
        }
    }
    None
}

/// A command that has arrived in part.
#[derive(Debug, Default)]
struct PartialCommand {
    stage: Stage,
    line: Beginning<32>,
    words: [Beginning<16>; 2],
    /// Arguments whose length has not arrived.
    arguments_left: usize,
    arguments: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Start,
    /// In the line with the number of arguments.
    Header,
    /// In the line with an argument's length.
    Length,
    /// In an argument, with this many bytes left including the line break.
    Argument(usize),
    /// In an inline command, after this many bytes.
    Inline(usize),
}

impl PartialCommand {
    /// Consumes bytes of this command. Returns their number if the command ends there.
    fn go_on(&mut self, input: &[u8]) -> Result<Option<usize>, Broken> {
        let mut at = 0;
        while let Some(byte) = input.get(at) {
            match self.stage {
                Stage::Start if *byte == b'*' => {
                    self.stage = Stage::Header;
                    at += 1;
                }
                Stage::Start => self.stage = Stage::Inline(0),
                Stage::Header | Stage::Length => {
                    at += 1;
                    if *byte != b'\n' {
                        self.line.push(*byte);
                    } else if self.end_line()? {
                        return Ok(Some(at));
                    }
                }
                Stage::Argument(left) => {
                    let taken = left.min(input.len() - at);
                    self.take(&input[at..at + taken.min(left.saturating_sub(2))]);
                    at += taken;
                    self.stage = Stage::Argument(left - taken);
                    if left == taken {
                        self.stage = Stage::Length;
                        if self.arguments_left == 0 {
                            return Ok(Some(at));
                        }
                    }
                }
                Stage::Inline(seen) => {
                    at += 1;
                    self.stage = Stage::Inline(seen + 1);
                    if *byte == b'\n' {
                        self.split_line();
                        return Ok(Some(at));
                    }
                    if seen >= LONGEST_INLINE {
                        return Err(Broken("too big inline request"));
                    }
                    self.line.push(*byte);
                }
            }
        }
        Ok(None)
    }

    /// Ends a line with a number. Returns true if it also ends the command.
    fn end_line(&mut self) -> Result<bool, Broken> {
        let line = std::mem::take(&mut self.line);
        let line = line.bytes().strip_suffix(b"\r").unwrap_or(line.bytes());
        if self.stage == Stage::Header {
            // Redis ignores a command with a negative number of arguments.
            if line.starts_with(b"-") {
                return Ok(true);
            }
            let arguments = decimal(line).filter(|arguments| *arguments <= MOST_ARGUMENTS);
            self.arguments_left = arguments.ok_or(Broken("invalid multibulk length"))?;
            self.stage = Stage::Length;
            return Ok(self.arguments_left == 0);
        }
        let length = line.strip_prefix(b"$").ok_or(Broken("expected '$'"))?;
        let length =
            decimal(length).filter(|length| *length <= LARGEST_ARGUMENT).ok_or(Broken("invalid bulk length"))?;
        self.arguments_left -= 1;
        self.arguments += 1;
        self.stage = Stage::Argument(length + 2);
        Ok(false)
    }

    /// Keeps the beginning of an argument if it is one of the first two.
    fn take(&mut self, bytes: &[u8]) {
        if let Some(word) = self.words.get_mut(self.arguments.wrapping_sub(1)) {
            word.extend(bytes);
        }
    }

    fn split_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let words = line.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        for (word, kept) in words.zip(&mut self.words) {
            kept.extend(word);
            self.arguments += 1;
        }
    }

    /// False for an empty line.
    fn is_command(&self) -> bool {
        self.arguments > 0
    }

    fn want(&self) -> Want {
        Want::of(self.words[0].bytes(), self.words[1].bytes())
    }
}

fn decimal(digits: &[u8]) -> Option<usize> {
    let is_number = !digits.is_empty() && digits.len() <= DIGITS && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |value, digit| value * 10 + usize::from(digit - b'0')))
}

/// The first bytes of a text. Every known name is shorter than the kept part of a word, so cutting never makes an unknown name known.
#[derive(Clone, Copy, Debug)]
struct Beginning<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Default for Beginning<N> {
    fn default() -> Self {
        Self { bytes: [0; N], length: 0 }
    }
}

impl<const N: usize> Beginning<N> {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().take(N) {
            self.push(*byte);
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
