use std::net::Ipv6Addr;

/// Splits `host:port`; IPv6 in brackets. Returns `None` if it is malformed.
pub(super) fn split(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
    let known = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => is_host_name(host),
    };
    known.then_some((host, port))
}

/// Returns whether it is `unix:` and an absolute path. Only for local runs: the API server rejects it, because a path exists on one machine
/// only.
pub(super) fn is_file(text: &str) -> bool {
    text.strip_prefix("unix:").is_some_and(|path| path.starts_with('/') && !path.contains('\0'))
}

/// Returns true for an HTTP URL without TLS, credentials, query or fragment. The port is optional.
pub(super) fn is_plain_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("http://") else { return false };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_known = split(authority).is_some() || split(&format!("{authority}:80")).is_some();
    is_known && !path.contains(|character: char| character.is_whitespace() || matches!(character, '?' | '#'))
}

/// A DNS name or an IPv4 address. Underscores are non-standard but common.
pub(super) fn is_host_name(host: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
    };
    host.len() <= 253 && host.strip_suffix('.').unwrap_or(host).split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        for (text, host, port) in [
            ("redis:6379", "redis", 6379),
            ("redis-cluster.cache.svc.cluster.local.:1", "redis-cluster.cache.svc.cluster.local.", 1),
            ("10.0.0.1:65535", "10.0.0.1", 65535),
            ("[fd00::1]:6379", "[fd00::1]", 6379),
        ] {
            assert_eq!(split(text), Some((host, port)));
        }
        for text in [
            "",
            ":",
            "redis",
            "redis:",
            ":6379",
            "redis:0",
            "redis:65536",
            "redis:+1",
            "redis:6379/0",
            "fd00::1:6379",
            "[fd00::1:6379",
            "[redis]:6379",
            "redis://redis:6379",
            "user@redis:6379",
            "a..b:1",
            "re dis:1",
            "-a:1",
        ] {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
