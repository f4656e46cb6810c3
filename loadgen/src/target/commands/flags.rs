//! The flags of an entry of COMMAND INFO.

use redis::Value;

use crate::target::client::text;

/// `None` if the entry has no flags.
pub(super) fn has_flag(fields: &[Value], wanted: &str) -> Option<bool> {
    let (Value::Array(flags) | Value::Set(flags)) = fields.get(2)? else { return None };
    Some(flags.iter().any(|flag| text(flag) == Some(wanted)))
}
