//! JSON lines, second by second.

use super::error::ExportError;
use super::rows::rows;
use crate::reading::Reading;

pub fn write(reading: &Reading) -> Result<Vec<u8>, ExportError> {
    let mut text = Vec::new();
    for row in rows(reading)? {
        serde_json::to_writer(&mut text, &row).map_err(|error| ExportError::Write("JSON", error.into()))?;
        text.push(b'\n');
    }
    Ok(text)
}
