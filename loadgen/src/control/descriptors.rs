//! The process's limit of open files, raised for the connections of a plan.

use std::io;

/// Descriptors beside the plan's connections: listener, conductors' connections, epoll, eventfds, log, and the runtime's own.
const BESIDES: u64 = 256;

/// Raises the soft limit to fit `connections`.
///
/// # Errors
/// Fails if the hard limit is too low. The message contains both numbers.
pub fn raise_limit(connections: u32) -> Result<(), String> {
    let needed = u64::from(connections) + BESIDES;
    let mut limit = limit().map_err(|error| format!("failed to read the limit of open files: {error}"))?;
    if limit.rlim_cur >= needed {
        return Ok(());
    }
    if limit.rlim_max < needed {
        return Err(format!(
            "{connections} connections need {needed} open files, but the limit is {}: lower \
             spec.load.connections, raise spec.shards.count, or raise the container runtime's limit of open files",
            limit.rlim_max
        ));
    }
    limit.rlim_cur = needed;
    set_limit(limit).map_err(|error| format!("failed to raise the limit of open files to {needed}: {error}"))
}

/// Raises the soft limit to the hard limit, for a server with an unknown number of clients.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn raise_open_files() -> io::Result<()> {
    let limit = limit()?;
    set_limit(libc::rlimit { rlim_cur: limit.rlim_max, ..limit })
}

fn limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit for the kernel to write to.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set_limit(limit: libc::rlimit) -> io::Result<()> {
    // SAFETY: `limit` is a valid rlimit that the kernel only reads.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::raise_limit;

    #[test]
    fn a_few_fit() {
        assert_eq!(raise_limit(1), Ok(()));
    }

    #[test]
    fn too_many_are_named() {
        let message = raise_limit(u32::MAX).unwrap_err();
        assert!(message.contains("4294967295 connections need 4294967551 open files"), "{message}");
    }
}
