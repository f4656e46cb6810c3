//! Finds the ends of commands in a stream of bytes, however it is cut into reads, and keeps nothing of them but the
//! beginnings of the first two words.
//!
//! The commands of a load are alike but for key and value. So what they have in common is remembered, and a command that
//! has it too is not parsed at all.

use std::ops::Range;

use super::replies::Want;

/// Redis's own bounds.
const MOST_ARGUMENTS: usize = 1 << 20;
const LARGEST_ARGUMENT: usize = 512 << 20;
const LONGEST_INLINE: usize = 64 << 10;

/// The longest second word that makes a difference, such as SLOTS.
const LONGEST_SECOND: usize = 5;

/// The digits of a number that is within the bounds.
const DIGITS: usize = 9;

/// Why a stream is not the protocol's: what Redis would say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken(pub &'static str);

/// The place in a connection's stream.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// The command that the last read cut.
    partial: Option<Box<Partial>>,
}

impl Scanner {
    /// Tells what the commands want that end in `input`, in their order, and how many in a row want it.
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

/// What the last two kinds of commands had in common, whoever sent them.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    known: [Option<Shape>; 2],
    /// The one that gives way.
    older: usize,
}

/// A command of two or three arguments without the last two: all of it, if they are as long.
#[derive(Debug)]
struct Shape {
    want: Want,
    length: usize,
    /// Up to the key.
    head: Beginning<48>,
    /// Between key and value.
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
    /// What the first commands of `input` want, how many are alike, and how long they are together.
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

    /// Remembers a command: its key and value, if it has one, begin and end there.
    fn remember(&mut self, want: Want, command: &[u8], key: Range<usize>, value: Option<Range<usize>>) {
        let middle = value.map_or(0..0, |value| key.end..value.start);
        // No second word that decides something is so long, so that this one is a key.
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

/// A command that stands whole at the beginning of `input`, and its length. None for everything unusual: that is for
/// [`Partial`], which takes its time.
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

/// A number after `mark`, and where the next line begins.
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

/// A command of which a part has come.
#[derive(Debug, Default)]
struct Partial {
    stage: Stage,
    line: Beginning<32>,
    words: [Beginning<16>; 2],
    /// Those of which the length has not come.
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
    /// In an argument; so many bytes are left, and the line break's two are among them.
    Argument(usize),
    /// In a command that is a plain line, of which so many bytes have come.
    Inline(usize),
}

impl Partial {
    /// Takes what belongs to the command. Says how many bytes that was if the command ends there.
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

    /// A line with a number has come. Says whether the command ends with it.
    fn end_line(&mut self) -> Result<bool, Broken> {
        let line = std::mem::take(&mut self.line);
        let line = line.bytes().strip_suffix(b"\r").unwrap_or(line.bytes());
        if self.stage == Stage::Header {
            // Redis takes 0 and less for no command.
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

    /// Keeps the beginning of an argument that is a word.
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

    /// Whether it is more than an empty line.
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

/// The first bytes of something. No name that is known is as long as what is kept of a word, so that what is cut is
/// unknown as it would be uncut.
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
