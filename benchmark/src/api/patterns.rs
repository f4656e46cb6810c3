//! Patterns of strings in the schema. `schema.rs` has a function and a message for each.

/// Names of targets, operations and the like: a DNS label.
pub const NAME_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// Pattern of a duration in the schema. Validation is stricter and also checks the range.
pub const DURATION_PATTERN: &str = r"^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$";

/// A decimal number above 0 and below 100 in at most 8 characters, and so with at most 6 decimals.
pub const DECIMAL_PATTERN: &str = r"^([1-9][0-9]?(\.[0-9]+)?|0\.0*[1-9][0-9]*)$";

/// Quantile in the format of [`crate::quantile::Quantile::parse`].
pub const QUANTILE_PATTERN: &str = r"^(0\.[0-9]{1,6}|1)$";

/// Pattern of a link's capacity in the schema.
pub const CAPACITY_PATTERN: &str = r"^[0-9]{1,6}(\.[0-9]{1,3})?[KMGT]bit$";

/// A collector's base URL: HTTP, a host with or without a port, and a path or none.
pub const COLLECTOR_PATTERN: &str = r"^http://(\[[0-9a-fA-F:.%]+\]|[^\s:\[\]/@?#]+)(:[0-9]{1,5})?(/[^\s?#]*)?$";

/// `host:port`. The host is a name, an IPv4 address, or an IPv6 address in brackets.
pub const ENDPOINT_PATTERN: &str = r"^(\[[0-9a-fA-F:.%]+\]|[^\s:\[\]/@]+):[0-9]{1,5}$";

/// A DNS name or an IPv4 address, without a port.
pub const HOST_PATTERN: &str = "^[a-zA-Z0-9_][-a-zA-Z0-9_.]*$";

/// Names of Secrets.
pub const OBJECT_NAME_PATTERN: &str = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$";

/// Keys within a Secret.
pub const SECRET_KEY_PATTERN: &str = "^[-._a-zA-Z0-9]+$";
