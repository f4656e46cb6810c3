//! Tests the client against a server that lies, is slow or never stops sending: every call ends within its timeout and in bounded memory,
//! and no forged answer is accepted.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redisbench_testkit::hostile::peak;
use redisbench_wire::{Answer, ClockReading, limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

use super::https::{CLOCK, RUN, Server, client, credential, unreachable};
use crate::conductor::client::{CallTimeouts, ShardClient};
use crate::conductor::trial::KEEP_CONTACT;
use crate::conductor::{Call, Endpoint, ShardCalls as _, Unreachable};

type Stream = TlsStream<TcpStream>;

/// For calls that can end only by their timeout.
const SHORT: Duration = Duration::from_millis(300);

fn impatient() -> ShardClient {
    ShardClient::new(RUN, &credential(RUN), CallTimeouts { call: SHORT, ..CallTimeouts::default() }).unwrap()
}

/// Reads one request to the end of its headers. `GET` has no body.
async fn request(stream: &mut Stream) -> bool {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => read.push(byte),
            Err(_) => return false,
        }
    }
    true
}

/// A valid answer of the clock.
fn answer(reading: u64) -> String {
    let answer = Answer::new(RUN, "pod", None, ClockReading { monotonic_nanoseconds: reading });
    let body = serde_json::to_string(&answer).unwrap();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// The error of the call if the server sends `bytes` and closes the connection.
async fn said(bytes: impl Into<Vec<u8>>) -> Unreachable {
    let bytes: Arc<Vec<u8>> = Arc::new(bytes.into());
    let server = Server::raw(move |mut stream| {
        let bytes = Arc::clone(&bytes);
        async move {
            if request(&mut stream).await {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
            }
        }
    })
    .await;
    unreachable(client().call(&server.endpoint(), &Call::Clock).await.unwrap_err())
}

/// The error of a call with a short timeout if the answer begins with `head` and repeats `more` forever.
async fn endless(client: ShardClient, head: &'static str, more: Vec<u8>, pause: Duration) -> Unreachable {
    let more = Arc::new(more);
    let server = Server::raw(move |mut stream| {
        let more = Arc::clone(&more);
        async move {
            if !request(&mut stream).await || stream.write_all(head.as_bytes()).await.is_err() {
                return;
            }
            // Ends when the client closes the connection.
            while stream.write_all(&more).await.is_ok() && stream.flush().await.is_ok() {
                tokio::time::sleep(pause).await; // the slowness that is tested
            }
        }
    })
    .await;
    unreachable(client.call(&server.endpoint(), &Call::Clock).await.unwrap_err())
}

fn is_too_large(how: &Unreachable) -> bool {
    let wanted = format!("larger than {} bytes", limits::SHORT_ANSWER_BYTES);
    matches!(how, Unreachable::Malformed(what) if *what == wanted)
}

#[test]
fn an_endless_body_is_cut_off_at_its_bound() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(1 << 16)).into_bytes();
    for (head, more) in [
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", chunk.clone()),
        ("HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n", chunk),
        // Without a length, the body ends with the connection, which never ends.
        ("HTTP/1.0 200 OK\r\n\r\n", vec![b' '; 1 << 16]),
    ] {
        let (how, held) = peak(|| runtime.block_on(endless(client(), head, more, Duration::ZERO)));
        assert!(is_too_large(&how), "{head}: {how:?}");
        // Several times the bound of the body, plus the buffers of TLS and HTTP on both sides.
        assert!(held < 4 << 20, "{held} bytes");
    }
}

#[tokio::test]
async fn what_is_announced_as_too_large_is_not_awaited() {
    for length in [limits::SHORT_ANSWER_BYTES as u64 + 1, 1 << 40] {
        let head: &'static str = Box::leak(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into());
        // Nothing follows: a client that waited would run into the timeout of its call.
        let how = endless(client(), head, Vec::new(), Duration::from_secs(3_600)).await;
        assert!(is_too_large(&how), "{how:?}");
    }
}

#[tokio::test]
async fn whoever_drags_their_feet_is_given_up() {
    for head in [
        // In the status line, in a header, in the body of a known and of an unknown length.
        "H",
        "HTTP/1.1 200 OK\r\nx-slow: ",
        "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\n",
    ] {
        let how = if head == "H" {
            endless(impatient(), head, Vec::new(), Duration::from_secs(3_600)).await
        } else {
            let piece = if head.contains("chunked") { "1\r\n \r\n" } else { " " };
            endless(impatient(), head, piece.into(), Duration::from_millis(20)).await
        };
        assert_eq!(how, Unreachable::TimedOut(SHORT), "{head}");
    }
}

#[tokio::test]
async fn interim_answers_without_end_are_given_up() {
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
    let how = endless(impatient(), "", interim, Duration::from_millis(1)).await;
    assert!(matches!(how, Unreachable::TimedOut(_) | Unreachable::Connection(_)), "{how:?}");
}

#[tokio::test]
async fn headers_without_end_are_refused() {
    let how = endless(client(), "HTTP/1.1 200 OK\r\n", b"x-more: and more\r\n".repeat(100), Duration::ZERO).await;
    assert!(matches!(how, Unreachable::Connection(_)), "{how:?}");
}

/// The read buffer does not grow.
#[tokio::test]
async fn a_head_longer_than_the_read_buffer_is_refused() {
    let long = format!("200 OK\r\nx-more: {}\r\n", "x".repeat(10_000));
    let how = said(answer(42).replacen("200 OK\r\n", &long, 1)).await;
    assert!(matches!(how, Unreachable::Connection(_)), "{how:?}");
}

#[tokio::test]
async fn tls_that_is_never_agreed_is_given_up() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let endpoint = Endpoint { shard: 0, incarnation: "pod".into(), address, host: String::new() };
    let how = unreachable(impatient().call(&endpoint, &Call::Clock).await.unwrap_err());
    assert_eq!(how, Unreachable::TimedOut(SHORT));
}

#[tokio::test]
async fn a_server_without_tls_is_refused() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(answer(1).as_bytes()).await.unwrap();
        // Kept open until the client closes it.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let endpoint = Endpoint { shard: 0, incarnation: "pod".into(), address, host: String::new() };
    let how = unreachable(client().call(&endpoint, &Call::Clock).await.unwrap_err());
    assert!(matches!(how, Unreachable::Connection(_)), "{how:?}");
    plain.await.unwrap();
}

#[tokio::test]
async fn what_breaks_off_is_no_answer() {
    let whole = answer(42);
    for length in [0, 5, 20, whole.len() - 1] {
        let how = said(&whole.as_bytes()[..length]).await;
        assert!(matches!(how, Unreachable::Connection(_)), "{length}: {how:?}");
    }
}

#[tokio::test]
async fn what_is_not_http_is_no_answer() {
    let mut noise = vec![0_u8; 4096];
    noise.iter_mut().zip(0_u32..).for_each(|(byte, at)| *byte = at.wrapping_mul(2_654_435_761).to_le_bytes()[3]);
    for bytes in [
        b"+PONG\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"HTTP/9.9 200 OK\r\n\r\n".to_vec(),
        b"HTTP/1.1 99999 OK\r\n\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616\r\n\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}".to_vec(),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n".to_vec(),
        noise,
    ] {
        let how = said(bytes.clone()).await;
        assert!(matches!(how, Unreachable::Connection(_)), "{:?}: {how:?}", String::from_utf8_lossy(&bytes));
    }
}

#[tokio::test]
async fn a_body_that_is_no_answer_is_not_used() {
    let body = answer(42).split_once("\r\n\r\n").unwrap().1.to_owned();
    let with = |head: &str, body: &str| format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    for bytes in [
        with("204 No Content", ""),
        with("200 OK", "<html>"),
        with("200 OK\r\ncontent-type: application/json", &format!("{body}{body}")),
        // The client did not ask for an encoding, so it does not decode it.
        with("200 OK\r\ncontent-encoding: gzip", "\u{1f}\u{8b}\u{8}"),
        with("200 OK", &body.replace("\"body\":{", "\"body\":{\"monotonicNanoseconds\":1,")),
        with("200 OK", &body.replace("42", "18446744073709551615")),
        // A refusal without the shape of one.
        with("503 Busy", &body),
        // Errors quote malformed input, but at bounded length.
        with("200 OK", &format!("{{\"{}\":1}}", "x".repeat(50_000))),
    ] {
        let how = said(bytes.clone()).await;
        let Unreachable::Malformed(what) = &how else { panic!("{bytes}: {how:?}") };
        assert!(what.len() <= limits::MESSAGE_BYTES, "{} bytes", what.len());
    }
}

/// A redirect is never followed: the call carries the run's credential.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let elsewhere = Server::raw(move |mut stream| {
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            let _ = stream.write_all(answer(42).as_bytes()).await;
        }
    })
    .await;
    for status in [301, 302, 307, 308] {
        let location = format!("https://{}/v1/clock", elsewhere.address);
        let how = said(format!("HTTP/1.1 {status} Go\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")).await;
        assert!(matches!(how, Unreachable::Malformed(_)), "{how:?}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

/// Shards without work are called once a minute.
#[tokio::test]
async fn a_connection_outlives_the_pause_between_two_calls() {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let server = Server::raw(move |mut stream| {
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            while request(&mut stream).await {
                let _ = stream.write_all(answer(42).as_bytes()).await;
            }
        }
    })
    .await;
    let client = client();
    for _ in 0..3 {
        assert_eq!(client.call(&server.endpoint(), &Call::Clock).await, Ok(CLOCK));
        // The connection returns to the pool.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
        tokio::time::advance(KEEP_CONTACT + Duration::from_secs(5)).await;
        tokio::time::resume();
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

/// A second answer behind the first must not count as the answer to the next call.
#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_dropped() {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let server = Server::raw(move |mut stream| {
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            while request(&mut stream).await {
                let made_up = if first { answer(666) } else { String::new() };
                let _ = stream.write_all(format!("{}{made_up}", answer(42)).as_bytes()).await;
            }
        }
    })
    .await;
    let client = client();
    for _ in 0..3 {
        let read = client.call(&server.endpoint(), &Call::Clock).await;
        // The connection may turn out broken, but the wrong answer is never accepted.
        assert!(read.is_err() || read == Ok(CLOCK), "{read:?}");
    }
    assert!(connections.load(Ordering::Relaxed) > 1);
}
