//! An endpoint, `host:port` or `unix:/path`, and its addresses.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::cluster::UNIX;

/// Resolvers try several servers for 5 s each. A look at the target must not wait for all of them.
const RESOLVE: Duration = Duration::from_secs(5);

/// One endpoint of a target. A UNIX socket is a host `unix:/path` with port 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// `host` may be an IPv6 address without brackets.
    pub fn new(host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port }
    }

    /// True for a UNIX socket.
    fn is_file(&self) -> bool {
        self.port == 0
    }

    /// The host, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The addresses in the resolver's order, at least one. A UNIX socket has one placeholder.
    ///
    /// # Errors
    /// Fails if the name cannot be resolved in time.
    pub async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        if self.is_file() {
            return Ok(vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))]);
        }
        let addresses = match timeout(RESOLVE, lookup_host((self.host.as_str(), self.port))).await {
            Ok(addresses) => addresses?.collect::<Vec<_>>(),
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        };
        if addresses.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(addresses) }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_file() {
            formatter.write_str(&self.host)
        } else if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not of the form host:port")]
pub struct EndpointError;

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        if text.strip_prefix(UNIX).is_some_and(|path| path.starts_with('/')) {
            return Ok(Self::new(text, 0));
        }
        let (host, port) = text.rsplit_once(':').ok_or(EndpointError)?;
        let port = port.parse().map_err(|_| EndpointError)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bracketed.unwrap_or(host);
        if host.is_empty() || port == 0 || (bracketed.is_none() && host.contains(':')) {
            return Err(EndpointError);
        }
        Ok(Self::new(host, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for text in ["redis:6379", "redis-cluster.cache.svc:1", "127.0.0.1:65535", "[::1]:6379", "unix:/run/redis.sock"]
        {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refuses_what_has_no_host_or_port() {
        for text in
            ["", "redis", ":6379", "redis:", "redis:0", "redis:65536", "redis:x", "::1:6379", "[]:1", "unix:redis"]
        {
            assert_eq!(text.parse::<Endpoint>(), Err(EndpointError), "{text}");
        }
    }

    #[tokio::test]
    async fn addresses_resolve_to_themselves() {
        let resolved = "[::1]:7".parse::<Endpoint>().unwrap().resolve().await.unwrap();
        assert_eq!(resolved, ["[::1]:7".parse::<SocketAddr>().unwrap()]);
    }
}
