//! Excerpts of a reply, for requests that need more than its outcome.

/// The part of a line that is kept, in bytes: more than any number or status of interest.
const LINE_BYTES: usize = 24;

/// The part of an error's text that is kept, in bytes.
const ERROR_BYTES: usize = 256;

/// The beginning of a reply, and the first error nested in it.
#[derive(Debug, Default)]
pub(super) struct Note {
    line: [u8; LINE_BYTES],
    length: usize,
    nested: Vec<u8>,
    has_nested: bool,
}

impl Note {
    /// Takes a line. `top` if it belongs to the reply itself rather than to a nested element.
    pub(super) fn take(&mut self, top: bool, kind: u8, text: &[u8]) {
        match (top, kind) {
            // Push messages and attributes precede a reply.
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
