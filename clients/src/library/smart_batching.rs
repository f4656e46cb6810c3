//! Smart batching: calls put their commands into the queue of a connection, and one writer sends all that waits with one system call.
//! While it writes, the next batch gathers, so batches grow with the load and nothing waits for a timer.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redisbench_loadgen::engine::{Handshake, Tls};
use redisbench_loadgen::resp::{self, Decoder};
use redisbench_wire::plan::Pool;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use super::outcome::{CallError, Reply};
use super::setup::Setup;
use super::turns::Turns;
use crate::command::Command;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// The pause before a broken connection is made again.
const PAUSE: Duration = Duration::from_millis(100);

type Answer = oneshot::Sender<Result<Reply, CallError>>;

/// A command and who waits for its reply.
#[derive(Debug)]
struct Job {
    bytes: Vec<u8>,
    answer: Answer,
}

#[derive(Debug)]
pub struct Connections {
    turns: Turns<mpsc::Sender<Job>>,
    patience: Duration,
}

impl Connections {
    pub async fn open(setup: &Setup, (queue, batch_bytes): (usize, usize), count: usize) -> Result<Self, String> {
        let server = setup.servers.first().cloned().ok_or("smart batching: the target has no server")?;
        let peer = Arc::new(Peer {
            server,
            tls: setup.tls.clone(),
            handshake: setup.handshake.clone(),
            connect_timeout: setup.connect_timeout,
            batch_bytes,
        });
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let stream = peer.connect().await.map_err(|error| format!("smart batching: {error}"))?;
            let (sender, jobs) = mpsc::channel(queue);
            tokio::spawn(serve(Arc::clone(&peer), stream, jobs));
            all.push(sender);
        }
        let turns = if setup.client.pool == Pool::Exclusive { Turns::exclusive(all) } else { Turns::shared(all) };
        Ok(Self { turns, patience: setup.response_timeout })
    }

    pub async fn call(&self, command: &Command) -> Result<Reply, CallError> {
        let gone = || CallError::connection("the connection broke before the reply");
        let called = async {
            let mut turn = self.turns.take(self.patience).await?;
            let (answer, reply) = oneshot::channel();
            let job = Job { bytes: command.bytes().to_vec(), answer };
            turn.connection()?.send(job).await.map_err(|_| gone())?;
            reply.await.unwrap_or_else(|_| Err(gone()))
        };
        timeout(self.patience, called).await.unwrap_or_else(|_| Err(CallError::timeout("no reply in time")))
    }
}

/// A connection, plain or within TLS.
type Stream = Either<TcpStream, TlsStream<TcpStream>>;

/// The server of a connection, and how to connect to it.
#[derive(Debug)]
struct Peer {
    server: (String, u16),
    tls: Option<Tls>,
    handshake: Handshake,
    connect_timeout: Duration,
    batch_bytes: usize,
}

impl Peer {
    async fn connect(&self) -> io::Result<Stream> {
        let (host, port) = &self.server;
        let made = async {
            let socket = TcpStream::connect((host.as_str(), *port)).await?;
            socket.set_nodelay(true)?;
            let mut stream = match &self.tls {
                None => Either::Left(socket),
                Some(tls) => {
                    let name = tls.name_of(&format!("{host}:{port}"))?;
                    Either::Right(TlsConnector::from(Arc::clone(&tls.config)).connect(name, socket).await?)
                }
            };
            stream.write_all(&self.handshake.bytes).await?;
            stream.flush().await?;
            let mut replies = Replies::default();
            let mut left = self.handshake.replies;
            while left > 0 {
                replies
                    .read(&mut stream, |reply| {
                        left = left.saturating_sub(1);
                        reply.map(|_| ()).map_err(|error| io::Error::other(error.message))
                    })
                    .await?;
            }
            Ok(stream)
        };
        timeout(self.connect_timeout, made).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Decodes replies from what is read.
struct Replies {
    decoder: Decoder,
    buffer: Vec<u8>,
    /// Bytes of the reply in progress.
    bytes: usize,
}

impl Default for Replies {
    fn default() -> Self {
        Self { decoder: Decoder::default(), buffer: vec![0; READ_BYTES], bytes: 0 }
    }
}

impl Replies {
    /// Reads once, and passes on all replies that are complete then.
    async fn read(
        &mut self,
        from: &mut (impl tokio::io::AsyncRead + Unpin),
        mut take: impl FnMut(Result<Reply, CallError>) -> io::Result<()>,
    ) -> io::Result<()> {
        let count = from.read(&mut self.buffer).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut input = &self.buffer[..count];
        while !input.is_empty() {
            let before = input.len();
            let reply = self.decoder.next(&mut input).map_err(io::Error::other)?;
            self.bytes += before - input.len();
            let Some(reply) = reply else { break };
            let bytes = std::mem::take(&mut self.bytes);
            take(match reply {
                resp::Reply::Error => Err(CallError::reply(&String::from_utf8_lossy(self.decoder.error_text()))),
                reply => Ok(Reply { nil: reply == resp::Reply::Nil, bytes }),
            })?;
        }
        Ok(())
    }
}

/// Sends jobs and answers them until nobody can send another. If the connection breaks, the jobs that it sent fail, and it is made again.
async fn serve(peer: Arc<Peer>, stream: Stream, mut jobs: mpsc::Receiver<Job>) {
    let mut stream = Some(stream);
    loop {
        let connected = match stream.take() {
            Some(stream) => Ok(stream),
            None => peer.connect().await,
        };
        let Ok(connected) = connected else {
            if jobs.is_closed() {
                return;
            }
            sleep(PAUSE).await;
            continue;
        };
        let (mut reader, mut writer) = match connected {
            Either::Left(plain) => {
                let (reader, writer) = plain.into_split();
                (Either::Left(reader), Either::Left(writer))
            }
            Either::Right(secure) => {
                let (reader, writer) = tokio::io::split(secure);
                (Either::Right(reader), Either::Right(writer))
            }
        };
        let waiting: Mutex<VecDeque<Answer>> = Mutex::default();
        let lock = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let write = async {
            let mut batch = Vec::with_capacity(peer.batch_bytes);
            while let Some(job) = jobs.recv().await {
                let mut next = Some(job);
                while let Some(Job { bytes, answer }) = next.take() {
                    // A caller that timed out while the connection was broken has counted its request as failed.
                    if !answer.is_closed() {
                        batch.extend_from_slice(&bytes);
                        lock().push_back(answer);
                    }
                    if batch.len() < peer.batch_bytes {
                        next = jobs.try_recv().ok();
                    }
                }
                // TLS may keep a part of it until it is flushed.
                if writer.write_all(&batch).await.is_err() || writer.flush().await.is_err() {
                    return false;
                }
                batch.clear();
            }
            true
        };
        let read = async {
            let mut replies = Replies::default();
            let answer = |reply| {
                let answer = lock().pop_front().ok_or_else(|| io::Error::other("a reply without a request"))?;
                // The caller may have timed out.
                let _ = answer.send(reply);
                Ok(())
            };
            while replies.read(&mut reader, answer).await.is_ok() {}
        };
        tokio::select! {
            over = write => if over {
                return;
            },
            () = read => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn replies_that_come_in_pieces_have_their_whole_length() {
        let mut replies = Replies::default();
        let mut taken = Vec::new();
        for piece in [&b"$5\r\nhel"[..], b"lo\r\n$-1\r\n-ERR no\r\n"] {
            let mut from = piece;
            replies
                .read(&mut from, |reply| {
                    taken.push(reply);
                    Ok(())
                })
                .await
                .unwrap();
        }
        assert_eq!(taken[0], Ok(Reply { nil: false, bytes: 11 }));
        assert_eq!(taken[1], Ok(Reply { nil: true, bytes: 5 }));
        assert_eq!(taken[2], Err(CallError::reply("ERR no")));
    }
}
