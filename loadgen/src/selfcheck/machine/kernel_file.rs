//! Reading of kernel files that stay open.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Applies `of` to the first kilobyte of a kernel file.
pub(super) fn read_start<T>(file: &File, of: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let mut text = [0; 1024];
    let length = file.read_at(&mut text, 0).ok()?;
    // The cut may split a character of a path.
    let text = &text[..length];
    of(std::str::from_utf8(text).or_else(|error| std::str::from_utf8(&text[..error.valid_up_to()])).ok()?)
}
