//! `redis://[[USER:]PASSWORD@]HOST[:PORT][/DATABASE]`, as redis-cli reads it; with the scheme `valkey`, as valkey-cli does.

use crate::credentials::Confidential;

/// A target's URI. Errors never quote it, because it may have a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    pub tls: bool,
    pub user: Option<String>,
    pub password: Option<Confidential>,
    /// IPv6 with brackets.
    pub host: String,
    pub port: Option<u16>,
    pub database: Option<u32>,
}

impl Uri {
    /// # Errors
    /// Names the problem, without the text itself.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let tls = match scheme {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return Err("must begin with redis:// or rediss://"),
        };
        let (login, rest) = rest.rsplit_once('@').map_or((None, rest), |(login, rest)| (Some(login), rest));
        let (address, database) = rest.split_once('/').unwrap_or((rest, ""));
        let database = Some(database).filter(|text| !text.is_empty()).map(str::parse).transpose();
        let database = database.map_err(|_| "must end with the number of a database, such as /0, or without one")?;
        let has_port = address.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
        let (host, port) = has_port.map_or((address, None), |(host, port)| (host, Some(port)));
        let port = port.map(str::parse).transpose().map_err(|_| "must have a port from 1 to 65535")?;
        if host.is_empty() {
            return Err("must have a host, such as redis://127.0.0.1:6379");
        }
        // A name alone is a password, as for redis-cli.
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or(("", login))) {
            Some((user, password)) => (Some(decode(user)?), Some(decode(password)?)),
            None => (None, None),
        };
        let user = user.filter(|user| !user.is_empty());
        Ok(Self { tls, user, password: password.map(Confidential::from), host: host.to_owned(), port, database })
    }
}

/// Replaces each `%` and two hexadecimal digits by their byte.
fn decode(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        if let ([b'%', ..], Some(hexadecimal)) =
            (rest, text.get(text.len() - behind.len()..text.len() - behind.len() + 2))
        {
            let byte = u8::from_str_radix(hexadecimal, 16).map_err(|_| "has a % without two hexadecimal digits")?;
            bytes.push(byte);
            rest = &behind[2..];
        } else if *first == b'%' {
            return Err("has a % without two hexadecimal digits");
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).map_err(|_| "has credentials that are not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (bool, Option<String>, Option<String>, String, Option<u16>, Option<u32>) {
        let Uri { tls, user, password, host, port, database } = Uri::parse(text).unwrap();
        (tls, user, password.map(|password| password.reveal().to_owned()), host, port, database)
    }

    #[test]
    fn parts_of_a_uri() {
        let host = |host: &str| host.to_owned();
        assert_eq!(parse("redis://a"), (false, None, None, host("a"), None, None));
        assert_eq!(parse("rediss://a:1/2"), (true, None, None, host("a"), Some(1), Some(2)));
        assert_eq!((parse("valkey://a"), parse("valkeys://a:1/2")), (parse("redis://a"), parse("rediss://a:1/2")));
        assert_eq!(parse("redis://[::1]:7/"), (false, None, None, host("[::1]"), Some(7), None));
        let login =
            |user: Option<&str>| (false, user.map(str::to_owned), Some("p@:w".to_owned()), host("a"), Some(1), None);
        assert_eq!(parse("redis://bob:p%40%3aw@a:1"), login(Some("bob")));
        assert_eq!(parse("redis://:p@:w@a:1"), login(None));
        assert_eq!(parse("redis://p%40%3Aw@a:1"), login(None));
    }

    #[test]
    fn what_is_no_uri_is_not_quoted() {
        for text in [
            "",
            "a",
            "http://a",
            "redis://",
            "redis://secret@",
            "redis://a:0x1",
            "redis://a:70000",
            "redis://a/b",
            "redis://s%4@a",
            "redis://s%zz@a",
            "redis://s%ff@a",
        ] {
            let message = Uri::parse(text).unwrap_err();
            assert!(message.starts_with("must ") || message.starts_with("has "), "{text}: {message}");
        }
    }
}
