//! The system calls that have no safe form in the standard library. All of this crate's unsafe code is here.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "the kernel's types, in ranges that it keeps"
)]

use std::io::{self, IoSlice, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData};
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

/// A readiness event of one file.
pub(crate) use epoll::{Event, EventFlags};

/// Flags of a closed or failed peer: read until nothing is left.
pub(crate) const HANGUP: EventFlags = EventFlags::HUP.union(EventFlags::RDHUP).union(EventFlags::ERR);

/// Room for an event.
pub(crate) const NO_EVENT: Event = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };

/// Reads the monotonic clock, in nanoseconds.
#[inline]
pub fn monotonic_nanoseconds() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread, in nanoseconds.
pub(crate) fn thread_cpu_nanoseconds() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Resources that this process has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resources {
    /// Processor time in its own code, in nanoseconds.
    pub user: u64,
    /// Processor time in the kernel, in nanoseconds.
    pub system: u64,
    pub context_switches: u64,
}

/// Reads what this process has used so far, with the microsecond resolution of the kernel.
pub fn resources() -> Resources {
    // SAFETY: all zeros is a valid value of this struct of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing. The call cannot fail with these arguments.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let time = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    Resources {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        context_switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
    }
}

#[inline]
fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing. The call cannot fail: every Linux has these clocks.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Enables kernel timestamps of received bytes, for [`receive_stamped`].
pub(crate) fn stamp_arrivals(socket: &TcpStream) -> io::Result<()> {
    let on: libc::c_int = 1;
    let (descriptor, length) = (socket.as_raw_fd(), size_of_val(&on) as libc::socklen_t);
    // SAFETY: the kernel reads `length` bytes of `on`, which is valid for the call.
    checked(unsafe {
        libc::setsockopt(descriptor, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, (&raw const on).cast(), length)
    })
    .map(drop)
}

/// Like `recv`. Also returns how many nanoseconds ago the last byte read arrived, if the kernel reports it.
pub(crate) fn receive_stamped(socket: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    // Room for one timestamp with its header. An array of `u64` has the alignment of the kernel's header.
    let mut control = [0_u64; 8];
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all members are numbers and pointers; zero is valid for both (a null pointer).
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: `message` points to `control` and to one vector, which points to `buffer`, each with its length. All are valid for writing
    // during the call.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled `control` with headers up to `msg_controllen`, and these macros stay within it. A header of this type
    // is followed by a `timespec`, which is read unaligned.
    let arrived = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let is_stamp = !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_TIMESTAMPNS;
        is_stamp.then(|| libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned())
    };
    let nanoseconds = |time: libc::timespec| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    // The kernel stamps with the time of day. If that was set back meanwhile, the delay is unknown.
    let delay = arrived.and_then(|arrived| clock(libc::CLOCK_REALTIME).checked_sub(nanoseconds(arrived)));
    Ok((count, delay))
}

/// Waits until the peer has closed `socket`, which is non-blocking, or until `until`. Drops everything received.
pub(crate) fn await_end(socket: &TcpStream, until: std::time::Instant) {
    let (mut reader, mut dropped) = (socket, [0; 4096]);
    loop {
        match reader.read(&mut dropped) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = until.saturating_duration_since(std::time::Instant::now());
                // Rounded up, so that less than a millisecond does not spin.
                let left = libc::c_int::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX);
                let mut polled = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: `polled` is one entry, valid for reading and writing during the call.
                if left == 0 || unsafe { libc::poll(&raw mut polled, 1, left) } <= 0 {
                    return;
                }
            }
            _ => return,
        }
    }
}

/// The time for which a connection had data in flight, in nanoseconds since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendTimes {
    /// Time with unacknowledged data, for any reason.
    pub busy: u64,
    /// Part of `busy`: limited by the peer's receive window, because the peer does not read.
    pub peer_limited: u64,
    /// Part of `busy`: limited by our send buffer, which was too small for the path.
    pub buffer_limited: u64,
}

/// TCP's statistics of a connection's sending. `None` on kernels before 4.10.
pub(crate) fn send_times(socket: &TcpStream) -> Option<SendTimes> {
    // The kernel's `struct tcp_info` up to `tcpi_sndbuf_limited`; microseconds.
    let mut information = [0_u64; 24];
    let mut length = size_of_val(&information) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `information`, and their number to `length`. Both are valid, and any bytes are
    // valid numbers.
    let result = unsafe {
        let (option, information) = (libc::TCP_INFO, information.as_mut_ptr().cast());
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, information, &raw mut length)
    };
    let [.., busy, peer_limited, buffer_limited] = information.map(|microseconds| microseconds.saturating_mul(1000));
    let whole = result == 0 && length as usize == size_of_val(&information);
    whole.then_some(SendTimes { busy, peer_limited, buffer_limited })
}

/// Begins to connect to the UNIX socket at `path`. The returned value is not TCP, but reads, writes and closes like it.
pub(crate) fn connect_to_file(path: &str) -> io::Result<TcpStream> {
    // SAFETY: all members are numbers, for which zero is valid.
    let mut raw: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    raw.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The last byte stays zero: it ends the path.
    if path.len() >= raw.sun_path.len() {
        let message = format!("the path of a UNIX socket has at most {} bytes", raw.sun_path.len() - 1);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    for (to, from) in raw.sun_path.iter_mut().zip(path.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: takes numbers and touches no memory.
    let socket =
        owned(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) })?;
    let length = size_of_val(&raw) as libc::socklen_t;
    // SAFETY: `raw` is an address of the socket's family, valid for `length` bytes.
    checked(unsafe { libc::connect(socket.as_raw_fd(), (&raw const raw).cast(), length) })?;
    Ok(TcpStream::from(socket))
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(result: libc::c_int) -> io::Result<OwnedFd> {
    let descriptor = checked(result)?;
    // SAFETY: the kernel has just returned this descriptor, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Like `recv`, without the cost of the C library's cancellation points.
#[inline]
pub(crate) fn receive(socket: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(socket, buffer, RecvFlags::empty())?.0)
}

/// Like `send`, in the same way.
#[inline]
pub(crate) fn send(socket: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)?)
}

/// The maximum number of pieces of one system call. More pieces take several calls.
const PIECES: usize = 64;

/// Sends up to [`PIECES`] of `pieces` in one system call, and returns how many bytes the socket took.
pub(crate) fn send_pieces<'p>(socket: &TcpStream, pieces: impl Iterator<Item = &'p [u8]>) -> io::Result<usize> {
    let mut slices = [IoSlice::new(&[]); PIECES];
    let mut count = 0;
    for (slice, piece) in slices.iter_mut().zip(pieces) {
        *slice = IoSlice::new(piece);
        count += 1;
    }
    let nothing = &mut SendAncillaryBuffer::default();
    Ok(rustix::net::sendmsg(socket, &slices[..count], nothing, SendFlags::NOSIGNAL)?)
}

#[derive(Debug)]
pub(crate) struct Poller(OwnedFd);

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Watches `file` for all events, edge-triggered. Closing the file ends it.
    pub(crate) fn add(&self, file: impl AsFd, token: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.0, file, EventData::new_u64(token), flags)?)
    }

    /// Waits for events, or until `timeout` has passed, in whole milliseconds rounded up. `None` waits without a limit. An interruption
    /// returns no events.
    pub(crate) fn wait<'a>(&self, events: &'a mut [Event], timeout: Option<Duration>) -> io::Result<&'a [Event]> {
        let seconds = |timeout: Duration| timeout.as_secs() as i64;
        let timeout =
            timeout.map(|timeout| Timespec { tv_sec: seconds(timeout), tv_nsec: timeout.subsec_nanos().into() });
        match epoll::wait(&self.0, &mut *events, timeout.as_ref()) {
            Ok(count) => Ok(&events[..count]),
            Err(rustix::io::Errno::INTR) => Ok(&[]),
            Err(error) => Err(error.into()),
        }
    }
}

/// Yields to other threads that are ready on this processor, such as the server's.
#[inline]
pub(crate) fn give_way() {
    rustix::thread::sched_yield();
}

/// Wakes a poller at an instant of the monotonic clock, with the precision of the kernel's timers. Unlike the timeout of a wait it stays
/// set while replies arrive, so the kernel programs its timer once per instant.
#[derive(Debug)]
pub struct Alarm {
    timer: OwnedFd,
    set: u64,
}

impl Alarm {
    /// An alarm that is not set.
    ///
    /// # Errors
    /// Fails if the kernel refuses a timer.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self { timer: rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?, set: 0 })
    }

    /// Sets the alarm to `instant`, in nanoseconds, replacing the previous one. Each expiry is an edge, so it need not be read.
    ///
    /// # Errors
    /// Fails if the kernel refuses the instant.
    #[inline]
    pub fn set(&mut self, instant: u64) -> io::Result<()> {
        if self.set == instant {
            return Ok(());
        }
        let at = Timespec { tv_sec: (instant / 1_000_000_000) as i64, tv_nsec: (instant % 1_000_000_000) as i64 };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: at };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        self.set = instant;
        Ok(())
    }

    /// The instant it was last set to, in nanoseconds.
    pub(crate) fn instant(&self) -> u64 {
        self.set
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// Wakes a worker from another thread.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    /// Each call is an edge, so the counter needs no reset. It fails only at 2^64 - 2 unread wakes, and then there is an edge anyway.
    pub(crate) fn wake(&self) {
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The kernel probes an idle connection after this time, in seconds: before firewalls and load balancers drop it, which in public clouds
/// is after 350 s or less.
const KEEPALIVE_IDLE: libc::c_int = 30;
/// Seconds between two probes.
const KEEPALIVE_INTERVAL: libc::c_int = 10;
/// Unanswered probes that end a connection.
const KEEPALIVE_PROBES: libc::c_int = 3;

/// Lets the kernel detect a peer that vanished silently: by probes on idle connections, and when data stays unacknowledged for longer
/// than `patience` (nanoseconds) or the time the probes take, whichever is longer.
fn keep_alive(socket: &OwnedFd, patience: u64) -> io::Result<()> {
    let probed = KEEPALIVE_IDLE + KEEPALIVE_INTERVAL * KEEPALIVE_PROBES;
    let patience = libc::c_int::try_from(patience / 1_000_000).unwrap_or(libc::c_int::MAX);
    for (level, option, value) in [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, KEEPALIVE_IDLE),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, KEEPALIVE_INTERVAL),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, KEEPALIVE_PROBES),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, patience.max(probed * 1_000)),
    ] {
        let length = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the kernel reads `length` bytes of `value`, which is valid for the call.
        checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) })?;
    }
    Ok(())
}

/// Begins to connect to `address` without waiting. Sent data may stay unacknowledged for `patience` nanoseconds.
pub(crate) fn connect(address: SocketAddr, patience: u64) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: takes numbers and touches no memory.
    let socket =
        owned(unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) })?;
    // A kernel without one of these options still connects.
    let _ = keep_alive(&socket, patience);
    let descriptor = socket.as_raw_fd();
    let result = match address {
        SocketAddr::V4(address) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                sin_zero: [0; 8],
            };
            let length = size_of_val(&raw) as libc::socklen_t;
            // SAFETY: `raw` is an address of the socket's family, valid for `length` bytes.
            unsafe { libc::connect(descriptor, (&raw const raw).cast(), length) }
        }
        SocketAddr::V6(address) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            let length = size_of_val(&raw) as libc::socklen_t;
            // SAFETY: as above.
            unsafe { libc::connect(descriptor, (&raw const raw).cast(), length) }
        }
    };
    match checked(result) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => {
            let stream = TcpStream::from(socket);
            stream.set_nodelay(true)?;
            Ok(stream)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn connections_are_kept_alive_by_the_kernel() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        for (patience, user_timeout) in
            [(1_000_000_000, 60_000), (90_000_000_000, 90_000), (u64::MAX, libc::c_int::MAX)]
        {
            let stream = connect(listener.local_addr().unwrap(), patience).unwrap();
            let option = |level, option| {
                let (mut value, mut length): (libc::c_int, _) = (0, size_of::<libc::c_int>() as libc::socklen_t);
                // SAFETY: the kernel writes at most `length` bytes to `value`; both are valid for the call.
                let result = unsafe {
                    libc::getsockopt(stream.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length)
                };
                assert_eq!(result, 0);
                value
            };
            assert_eq!(option(libc::SOL_SOCKET, libc::SO_KEEPALIVE), 1);
            assert_eq!(option(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE), 30);
            assert_eq!(option(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT), user_timeout);
        }
    }
}
