//! A slow proxy before a server: it forwards each chunk after a delay, or one after the other.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use redisbench_testkit::machine::pass;

/// The slowing down of clients' requests by the proxy.
#[derive(Clone, Copy)]
pub enum Slow {
    /// Everything arrives with this delay, regardless of the amount.
    Latency(Duration),
    /// Forwards one chunk at a time over all connections. A chunk takes this long. The capacity is exact: if a thread wakes late, the
    /// next chunks do not wait for it.
    Busy(Duration),
}

/// A proxy that runs until the test's process ends.
pub struct Proxy(SocketAddr);

impl Proxy {
    pub fn before(server: SocketAddr, slow: Slow) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let free = Arc::new(Mutex::new(Instant::now()));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let free = Arc::clone(&free);
                let Ok(upstream) = TcpStream::connect(server) else { continue };
                let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
                let (reader, writer) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
                match slow {
                    Slow::Latency(delay) => delayed(reader, writer, delay),
                    Slow::Busy(each) => drop(thread::spawn(move || serial(reader, writer, &free, each))),
                }
                thread::spawn(move || straight(upstream, client));
            }
        });
        Self(address)
    }

    pub fn endpoint(&self) -> String {
        self.0.to_string()
    }
}

fn straight(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}

/// Forwards one chunk at a time from all clients, like a proxy with one busy thread that is `free` from an instant on.
fn serial(mut from: TcpStream, mut to: TcpStream, free: &Mutex<Instant>, each: Duration) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let done = {
            let mut free = free.lock().unwrap();
            *free = (*free).max(Instant::now()) + each;
            *free
        };
        pass(done.saturating_duration_since(Instant::now()));
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Forwards data after `delay`.
fn delayed(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let held = Arc::new((Mutex::new(VecDeque::<(Instant, Option<Vec<u8>>)>::new()), std::sync::Condvar::new()));
    let sender = Arc::clone(&held);
    thread::spawn(move || {
        let mut buffer = vec![0; 65536];
        loop {
            let piece = match from.read(&mut buffer) {
                Ok(length @ 1..) => Some(buffer[..length].to_vec()),
                _ => None,
            };
            let end = piece.is_none();
            sender.0.lock().unwrap().push_back((Instant::now() + delay, piece));
            sender.1.notify_one();
            if end {
                return;
            }
        }
    });
    thread::spawn(move || {
        loop {
            let mut queue = held.0.lock().unwrap();
            while queue.is_empty() {
                queue = held.1.wait(queue).unwrap();
            }
            let (due, piece) = queue.pop_front().unwrap();
            drop(queue);
            pass(due.saturating_duration_since(Instant::now()));
            match piece {
                Some(piece) if to.write_all(&piece).is_ok() => {}
                _ => {
                    let _ = to.shutdown(Shutdown::Both);
                    return;
                }
            }
        }
    });
}
