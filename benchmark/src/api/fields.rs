//! Functions that the attributes of fields name, for defaults and for fields that are left out.

pub(in crate::api) fn default_one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it by reference")]
pub(in crate::api) fn is_zero(value: &u64) -> bool {
    *value == 0
}
