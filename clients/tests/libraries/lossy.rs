//! A proxy that loses replies: the server has executed a request, and its client cannot know.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread;

/// The beginning of a GET behind the number of its words.
const GET: &[u8] = b"\r\n$3\r\nGET\r\n";

/// A proxy that runs until the test's process ends.
pub struct Lossy {
    pub address: SocketAddr,
    lost: Arc<AtomicU64>,
}

impl Lossy {
    /// Of each connection, keeps the reply to this GET, from 1, and closes the connection instead. A connection may have one request in
    /// progress at a time.
    pub fn before(server: SocketAddr, which: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let lost = Arc::new(AtomicU64::new(0));
        let all = Arc::clone(&lost);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(upstream) = TcpStream::connect(server) else { continue };
                let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
                let (reader, writer) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
                let is_due = Arc::new(AtomicBool::new(false));
                let (told, lost) = (Arc::clone(&is_due), Arc::clone(&all));
                thread::spawn(move || requests(reader, writer, which, &told));
                thread::spawn(move || replies(upstream, client, &is_due, &lost));
            }
        });
        Self { address, lost }
    }

    /// Replies that were lost so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

/// Forwards requests. Sets `is_due` before the one that gets no reply.
fn requests(mut from: TcpStream, mut to: TcpStream, which: u64, is_due: &AtomicBool) {
    let (mut buffer, mut gets) = ([0; 4096], 0);
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        gets += u64::from(buffer[..length].windows(GET.len()).any(|bytes| bytes == GET));
        is_due.store(gets >= which, Release);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Forwards replies until one is due to be lost.
fn replies(mut from: TcpStream, mut to: TcpStream, is_due: &AtomicBool, lost: &AtomicU64) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if is_due.load(Acquire) {
            // Before the client can see that the connection is closed.
            lost.fetch_add(1, Relaxed);
            break;
        }
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
