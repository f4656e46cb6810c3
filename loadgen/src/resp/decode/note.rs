//! What is kept of a reply where its outline is not enough.

/// How much of a line is kept: more than any number or status that is looked for.
const LINE_BYTES: usize = 24;

/// How much of an error's text is kept.
const ERROR_BYTES: usize = 256;

/// The beginning of a reply, and the first error within it.
#[derive(Debug, Default)]
pub(super) struct Note {
    line: [u8; LINE_BYTES],
    length: usize,
    nested: Vec<u8>,
    has_nested: bool,
}

impl Note {
    /// Takes a line, which is of the reply itself if `top`.
    pub(super) fn take(&mut self, top: bool, kind: u8, text: &[u8]) {
        match (top, kind) {
            // They stand before a reply and are none.
            (true, b'>' | b'|') => {}
            (true, _) => {
                let rest = text.len().min(LINE_BYTES - 1);
                self.line[0] = kind;
                self.line[1..=rest].copy_from_slice(&text[..rest]);
                self.length = rest + 1;
                self.has_nested = false;
            }
            (false, b'-' | b'!') if !self.has_nested => {
                let text = if kind == b'-' { text } else { b"ERR a bulk error" };
                self.nested.clear();
                self.nested.extend_from_slice(&text[..text.len().min(ERROR_BYTES)]);
                self.has_nested = true;
            }
            (false, _) => {}
        }
    }

    pub(super) fn line(&self) -> &[u8] {
        &self.line[..self.length]
    }

    pub(super) fn nested(&self) -> Option<&[u8]> {
        self.has_nested.then_some(&self.nested)
    }
}
