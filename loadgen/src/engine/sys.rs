//! The system calls of the engine that the standard library has no safe form of. All of this crate's unsafe code is
//! here.
#![allow(clippy::cast_sign_loss, clippy::cast_possible_wrap, reason = "the kernel's types, in ranges that it keeps")]

use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// What epoll reports of one file.
pub(crate) type Event = libc::epoll_event;

/// The bits of [`Event::events`] that say: read until nothing is left, the end or an error is near.
pub(crate) const HANGUP: u32 = (libc::EPOLLHUP | libc::EPOLLRDHUP | libc::EPOLLERR) as u32;
/// Something to read.
pub(crate) const READABLE: u32 = libc::EPOLLIN as u32;
/// Room to write.
pub(crate) const WRITABLE: u32 = libc::EPOLLOUT as u32;

/// Reads the monotonic clock, in nanoseconds.
#[inline]
pub fn monotonic_nanoseconds() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread, in nanoseconds.
pub(crate) fn thread_cpu_nanoseconds() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline]
fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing. The call cannot fail: both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Has the kernel note when bytes arrive on this socket, for [`receive_stamped`].
pub(crate) fn stamp_arrivals(socket: &TcpStream) -> io::Result<()> {
    let on: libc::c_int = 1;
    let (descriptor, length) = (socket.as_raw_fd(), size_of_val(&on) as libc::socklen_t);
    // SAFETY: the kernel reads `length` bytes of `on`, which is valid for the call.
    checked(unsafe {
        libc::setsockopt(descriptor, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, (&raw const on).cast(), length)
    })
    .map(drop)
}

/// Reads as `recv` does, and says how many nanoseconds ago the last byte read arrived, if the kernel knows.
pub(crate) fn receive_stamped(socket: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    // Room for one time stamp with its header; of `u64`, so that it is aligned as the kernel's header is.
    let mut control = [0_u64; 8];
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all members are numbers and pointers, of which zero is one that points nowhere.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: `message` points to one vector, which points to `buffer`, and to `control`, each with its length; all are
    // valid for writing during the call.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled `control` with headers up to `msg_controllen`, within which these macros stay; a header
    // of this type is followed by a `timespec`, which is read without being aligned.
    let arrived = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let is_stamp = !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_TIMESTAMPNS;
        is_stamp.then(|| libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned())
    };
    let nanoseconds = |time: libc::timespec| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    // The kernel stamps with the time of day. If that was set back meanwhile, nothing is known.
    let delay = arrived.and_then(|arrived| clock(libc::CLOCK_REALTIME).checked_sub(nanoseconds(arrived)));
    Ok((count, delay))
}

/// Waits until the peer has closed `socket`, which never blocks, or for its end. What still comes is dropped.
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

/// For how long a connection had something on its way, in nanoseconds since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendTimes {
    /// Something was sent and not acknowledged, whatever held it up.
    pub busy: u64,
    /// Of this, held up because the peer has no room: it does not read.
    pub peer_limited: u64,
    /// Of this, held up because our buffer was too small for the path.
    pub buffer_limited: u64,
}

/// What TCP says of a connection's sending; none from kernels before 4.10.
pub(crate) fn send_times(socket: &TcpStream) -> Option<SendTimes> {
    // The kernel's struct tcp_info up to tcpi_sndbuf_limited; microseconds.
    let mut information = [0_u64; 24];
    let mut length = size_of_val(&information) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `information`, and how many it wrote to `length`; both are
    // valid, and any bytes are valid numbers.
    let result = unsafe {
        let (option, information) = (libc::TCP_INFO, information.as_mut_ptr().cast());
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, information, &raw mut length)
    };
    let [.., busy, peer_limited, buffer_limited] = information.map(|microseconds| microseconds.saturating_mul(1000));
    let whole = result == 0 && length as usize == size_of_val(&information);
    whole.then_some(SendTimes { busy, peer_limited, buffer_limited })
}

/// Begins to connect to the socket at `path`. What is returned is no TCP, but reads, writes and closes as if it were.
pub(crate) fn connect_to_file(path: &str) -> io::Result<TcpStream> {
    // SAFETY: all members are numbers, of which zero is one.
    let mut raw: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    raw.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The last one stays zero: it ends the path.
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
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// An epoll instance.
#[derive(Debug)]
pub(crate) struct Poller(OwnedFd);

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: takes a flag and touches no memory.
        owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(Self)
    }

    /// Watches `file`, edge-triggered, for everything. Closing the file ends it.
    pub(crate) fn add(&self, file: &impl AsRawFd, token: u64) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
        let mut event = Event { events, u64: token };
        let (poller, file): (RawFd, RawFd) = (self.0.as_raw_fd(), file.as_raw_fd());
        // SAFETY: both descriptors are open, and `event` is valid for the call.
        checked(unsafe { libc::epoll_ctl(poller, libc::EPOLL_CTL_ADD, file, &raw mut event) }).map(drop)
    }

    /// Waits until something happens or `timeout` has passed, in whole milliseconds rounded up; without one until
    /// something happens. An interruption is no event.
    pub(crate) fn wait<'a>(&self, events: &'a mut [Event], timeout: Option<Duration>) -> io::Result<&'a [Event]> {
        let capacity = events.len() as libc::c_int;
        let milliseconds =
            timeout.map_or(-1, |timeout| timeout.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as libc::c_int);
        // SAFETY: `events` is valid for `capacity` events.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), capacity, milliseconds) };
        match checked(count) {
            Ok(count) => Ok(&events[..count as usize]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(&[]),
            Err(error) => Err(error),
        }
    }
}

/// Lets other threads run on this processor that are ready to, such as the server's.
#[inline]
pub(crate) fn give_way() {
    // SAFETY: touches no memory.
    unsafe { libc::sched_yield() };
}

/// Wakes a poller at an instant of the monotonic clock, to the nanosecond as far as the kernel can. Unlike the timeout of
/// a wait it stays set while replies come in between, so that the kernel programs its timer once per instant.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: OwnedFd,
    set: u64,
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: takes numbers and touches no memory.
        let timer = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        Ok(Self { timer, set: 0 })
    }

    /// Goes off at `instant`, in nanoseconds, and no more at the one before. Each time is an edge of its own, so it need
    /// not be read.
    #[inline]
    pub(crate) fn set(&mut self, instant: u64) -> io::Result<()> {
        if self.set == instant {
            return Ok(());
        }
        let at = libc::timespec {
            tv_sec: (instant / 1_000_000_000) as libc::time_t,
            tv_nsec: (instant % 1_000_000_000) as libc::c_long,
        };
        let once = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        let (timer, before) = (self.timer.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: `once` is valid for the call, and what was set before is not asked for.
        checked(unsafe { libc::timerfd_settime(timer, libc::TFD_TIMER_ABSTIME, &raw const once, before) })?;
        self.set = instant;
        Ok(())
    }
}

impl Alarm {
    /// What it was set to last, in nanoseconds.
    pub(crate) fn instant(&self) -> u64 {
        self.set
    }
}

impl AsRawFd for Alarm {
    fn as_raw_fd(&self) -> RawFd {
        self.timer.as_raw_fd()
    }
}

/// Wakes a worker from another thread.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: takes numbers and touches no memory.
        owned(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) }).map(Self)
    }

    /// Each call is an edge of its own, so the counter needs no resetting.
    pub(crate) fn wake(&self) {
        let one = 1u64;
        // SAFETY: `one` is valid for 8 bytes. It fails only at 2^64 - 2 wakes unread, and then there is an edge anyway.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }
}

impl AsRawFd for Waker {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A connection at rest is probed by the kernel after this time, in seconds: sooner than firewalls and load balancers forget
/// one, which is 350 s and less in public clouds.
const KEEPALIVE_IDLE: libc::c_int = 30;
/// Between two probes, in seconds.
const KEEPALIVE_INTERVAL: libc::c_int = 10;
/// Probes without an answer that end a connection.
const KEEPALIVE_PROBES: libc::c_int = 3;

/// Has the kernel find out when the peer is gone without a word: by probes at rest, and where bytes stay unacknowledged for
/// longer than `patience` in nanoseconds, or for as long as the probes take.
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

/// Begins a connection to `address` and does not wait for it. What is sent may stay unacknowledged for `patience`
/// nanoseconds.
pub(crate) fn connect(address: SocketAddr, patience: u64) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: takes numbers and touches no memory.
    let socket =
        owned(unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) })?;
    // A kernel that lacks one of these options connects all the same.
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
