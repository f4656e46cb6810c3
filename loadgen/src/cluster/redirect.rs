/// The server that a request was redirected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirect<'a> {
    /// The slot has a new owner.
    Moved {
        slot: u16,
        /// `host:port`. An empty host means that of the server that replied.
        address: &'a str,
    },
    /// The slot is migrating, and this key is already at its next owner.
    Ask {
        slot: u16,
        /// As in `Moved`.
        address: &'a str,
    },
}

impl<'a> Redirect<'a> {
    /// Parses an error reply's text. `None` if it is not a redirect, or one that cannot be followed.
    pub fn parse(error: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(error).ok()?;
        let mut words = text.split(' ');
        let (kind, slot, address) = (words.next()?, words.next()?, words.next()?);
        let slot = slot.parse().ok().filter(|slot| usize::from(*slot) < super::SLOTS)?;
        match kind {
            "MOVED" => Some(Self::Moved { slot, address }),
            "ASK" => Some(Self::Ask { slot, address }),
            _ => None,
        }
    }
}

/// Why a server cannot serve a request now but may soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deferral {
    /// Some of its keys have migrated to another node and some have not. The slot itself is served.
    TryAgain,
    /// The cluster has no owner for it, or no majority of nodes.
    ClusterDown,
    /// The server is still loading its keys from disk.
    Loading,
}

impl Deferral {
    /// Parses an error reply's text. `None` for all other errors.
    pub fn parse(error: &[u8]) -> Option<Self> {
        match error.split(|byte| *byte == b' ').next().unwrap_or_default() {
            b"TRYAGAIN" => Some(Self::TryAgain),
            b"CLUSTERDOWN" => Some(Self::ClusterDown),
            b"LOADING" => Some(Self::Loading),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_told_from_what_stays() {
        for (transient, expected) in [
            ("TRYAGAIN Multiple keys request", Deferral::TryAgain),
            ("CLUSTERDOWN The cluster is down", Deferral::ClusterDown),
            ("LOADING Redis is", Deferral::Loading),
            ("LOADING", Deferral::Loading),
        ] {
            assert_eq!(Deferral::parse(transient.as_bytes()), Some(expected), "{transient}");
        }
        for lasting in ["", "ERR LOADING", "LOADINGS", "READONLY You can't write", "OOM command not allowed"] {
            assert_eq!(Deferral::parse(lasting.as_bytes()), None, "{lasting}");
        }
    }

    #[test]
    fn redirects_are_read() {
        assert_eq!(
            Redirect::parse(b"MOVED 3999 127.0.0.1:6381"),
            Some(Redirect::Moved { slot: 3999, address: "127.0.0.1:6381" })
        );
        assert_eq!(Redirect::parse(b"ASK 0 :6381"), Some(Redirect::Ask { slot: 0, address: ":6381" }));
    }

    #[test]
    fn everything_else_is_none() {
        for error in
            [&b"ERR no"[..], b"MOVED", b"MOVED 16384 a:1", b"MOVED x a:1", b"ASK 1", b"TRYAGAIN 1 a:1", b"\xff"]
        {
            assert_eq!(Redirect::parse(error), None, "{error:?}");
        }
    }
}
