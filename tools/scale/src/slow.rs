//! A slow API server: a proxy that delays its answers.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

/// Bytes read at once, and pieces of answers that a connection holds back at most. They bound memory, and at 16 KiB per TLS record hardly
/// the throughput.
const PIECE: usize = 64 << 10;
const PIECES: usize = 1024;

/// Starts a proxy in front of the server of `kubeconfig`. Returns a kubeconfig that leads through it. The server's certificate is also valid
/// for 127.0.0.1.
///
/// # Errors
/// If the kubeconfig has no server, or a file or a port cannot be had.
pub async fn delayed(kubeconfig: &Path, by: Duration) -> Result<PathBuf> {
    let text = std::fs::read_to_string(kubeconfig).context("failed to read the operator's kubeconfig")?;
    let (before, rest) = text.split_once("\"https://").context("the operator's kubeconfig has no server")?;
    let (server, after) = rest.split_once('"').context("the operator's kubeconfig has no server")?;
    let listener = TcpListener::bind("127.0.0.1:0").await.context("failed to listen for the operator")?;
    let address = listener.local_addr().context("failed to listen for the operator")?;
    let path = kubeconfig.with_extension("slow.conf");
    std::fs::write(&path, format!("{before}\"https://{address}\"{after}")).context("failed to write a kubeconfig")?;
    tokio::spawn(proxy(listener, server.to_owned(), by));
    Ok(path)
}

async fn proxy(listener: TcpListener, server: String, by: Duration) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // Fails if the client ended its connection before, or files ran out.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let server = server.clone();
        tokio::spawn(async move {
            // Fails if a side broke the connection. The operator makes another.
            let _ = pass(client, &server, by).await;
        });
    }
}

/// Passes requests on at once, and each piece of an answer `by` later.
async fn pass(client: TcpStream, server: &str, by: Duration) -> io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (sender, mut held_back) = mpsc::channel(PIECES);
    let requests = async move {
        copy(&mut from_client, &mut to_server).await?;
        to_server.shutdown().await
    };
    let answers = async move {
        let mut piece = vec![0; PIECE];
        loop {
            let length = from_server.read(&mut piece).await?;
            if length == 0 || sender.send((Instant::now() + by, piece[..length].to_vec())).await.is_err() {
                return io::Result::Ok(());
            }
        }
    };
    let late = async move {
        while let Some((due, piece)) = held_back.recv().await {
            sleep_until(due).await;
            to_client.write_all(&piece).await?;
        }
        to_client.shutdown().await
    };
    tokio::try_join!(requests, answers, late)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_are_late_and_whole() {
        let by = Duration::from_millis(30);
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = server.accept().await.unwrap();
            let (mut from, mut to) = stream.into_split();
            copy(&mut from, &mut to).await.unwrap();
        });
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("operator.conf");
        std::fs::write(&kubeconfig, format!("{{cluster: {{server: \"https://{address}\", x: y}}}}")).unwrap();
        let slow = std::fs::read_to_string(delayed(&kubeconfig, by).await.unwrap()).unwrap();
        let address = slow.strip_prefix("{cluster: {server: \"https://").unwrap().strip_suffix("\", x: y}}").unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let (began, sent) = (Instant::now(), vec![7; 3 * PIECE]);
        stream.write_all(&sent).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.unwrap();
        assert!(began.elapsed() >= by);
        assert!(received == sent);
    }
}
