//! The drivers of a shard: their sockets, and the processes of those that the shard starts itself.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::time::{interval, sleep, timeout};

use crate::contract::SOCKET;
use crate::session::{Fault, Idle, Session};

/// Interval of looking whether a process has ended, which no event reports.
const LOOK: Duration = Duration::from_millis(20);

/// The longest time that a process may take to end after it has closed its socket, for its exit status.
const LAST_WORD: Duration = Duration::from_secs(5);

/// The socket is for this user and this group: a driver's container may run as another user.
const MODE: u32 = 0o660;

/// A driver that a plan may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    pub name: String,
    /// The program and its arguments, as a shell reads them. `None` if it is started elsewhere.
    pub command: Option<String>,
}

impl FromStr for Declared {
    type Err = Infallible;

    /// `NAME` or `NAME=COMMAND`.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.split_once('=') {
            Some((name, command)) => Self { name: name.to_owned(), command: Some(command.to_owned()) },
            None => Self { name: text.to_owned(), command: None },
        })
    }
}

/// Time limits of a driver's steps.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For its Hello, for Ready beyond the connect timeout, and for Bye beyond the last outcome.
    pub step: Duration,
    /// For an outcome, beyond the timeouts of its library.
    pub outcome: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { step: Duration::from_secs(60), outcome: Duration::from_secs(10) }
    }
}

/// The drivers of a shard, by name.
#[derive(Debug, Default)]
pub struct Drivers(BTreeMap<String, Arc<Socket>>);

impl Drivers {
    /// Listens on a socket for each of `declared`: `DIRECTORY/NAME.sock`.
    ///
    /// # Errors
    /// Fails if a socket cannot be made.
    pub fn listen(directory: &Path, declared: Vec<Declared>, patience: Patience) -> io::Result<Self> {
        let bind = |one: Declared| -> io::Result<(String, Arc<Socket>)> {
            Ok((one.name.clone(), Arc::new(Socket::bind(directory, one, patience)?)))
        };
        declared.into_iter().map(bind).collect::<io::Result<_>>().map(Self)
    }

    /// The socket of a driver.
    ///
    /// # Errors
    /// Fails with a message for people if there is none.
    pub fn socket(&self, name: &str) -> Result<Arc<Socket>, String> {
        self.0.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!("this shard was started without driver {name}; it has {known}")
        })
    }
}

/// The right to use a driver, which one trial has at a time, and the place where the driver waits for the next trial.
pub type DriverTurn = OwnedMutexGuard<Option<Idle>>;

/// Keeps a driver for the next trial.
pub fn rest(session: Session, mut turn: DriverTurn) {
    // Without it, the driver ends, and the next trial asks for another.
    *turn = session.rest().ok();
}

/// The socket of a driver.
#[derive(Debug)]
pub struct Socket {
    pub name: String,
    pub patience: Patience,
    path: PathBuf,
    listener: UnixListener,
    command: Option<String>,
    process: Mutex<Option<Child>>,
    /// The driver between two trials. Locked by the trial that uses it.
    idle: Arc<tokio::sync::Mutex<Option<Idle>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Socket {
    fn bind(directory: &Path, Declared { name, command }: Declared, patience: Patience) -> io::Result<Self> {
        let path = directory.join(format!("{name}.sock"));
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        fs::set_permissions(&path, Permissions::from_mode(MODE))?;
        Ok(Self { name, patience, path, listener, command, process: Mutex::default(), idle: Arc::default() })
    }

    fn broken(&self, why: impl std::fmt::Display) -> Fault {
        Fault::Broken(format!("driver {}: {why}", self.name))
    }

    /// The driver, which says hello if it has not said it to an earlier trial. Waits for the end of that.
    ///
    /// # Errors
    /// Fails if it does not come, or comes with something else.
    pub async fn session(&self) -> Result<(Session, DriverTurn), Fault> {
        let limit = self.patience.step;
        timeout(limit, self.find()).await.unwrap_or_else(|_| {
            let (name, path) = (&self.name, self.path.display());
            Err(Fault::Refused(format!("driver {name}: no Hello on {path} within {limit:?}: is it running?")))
        })
    }

    async fn find(&self) -> Result<(Session, DriverTurn), Fault> {
        let mut turn = Arc::clone(&self.idle).lock_owned().await;
        if let Some(session) = turn.take().and_then(Idle::resume) {
            return Ok((session, turn));
        }
        self.start().map_err(|error| self.broken(format!("its command could not be started: {error}")))?;
        Ok((self.accept().await?, turn))
    }

    async fn accept(&self) -> Result<Session, Fault> {
        let refused = |error: io::Error| self.broken(format!("its socket cannot be used: {error}"));
        let listener = self.listener.try_clone().and_then(tokio::net::UnixListener::from_std).map_err(refused)?;
        let mut look = interval(LOOK);
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (stream, _) = accepted.map_err(refused)?;
                    // One that has ended was perhaps replaced.
                    if let Some(session) = Session::begin(stream).await.map_err(|why| self.broken(why))? {
                        return Ok(session);
                    }
                }
                _ = look.tick() => if let Some(status) = self.exited() {
                    return Err(self.broken(format!("its command ended before Hello: {status}")));
                }
            }
        }
    }

    /// Starts the driver's process, if that is this shard's business. A former one has lost its socket.
    fn start(&self) -> io::Result<()> {
        let Some(command) = &self.command else { return Ok(()) };
        self.end();
        let child = Command::new("/bin/sh")
            // The driver takes the place of the shell, so that ending the child ends the driver.
            .args(["-c", &format!("exec {command}")])
            .env(SOCKET, &self.path)
            .stdin(Stdio::null())
            .spawn()?;
        *lock(&self.process) = Some(child);
        Ok(())
    }

    fn end(&self) {
        if let Some(mut child) = lock(&self.process).take() {
            // Fails only if it has exited.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn exited(&self) -> Option<ExitStatus> {
        lock(&self.process).as_mut()?.try_wait().ok().flatten()
    }

    /// The exit status of the driver's process, if this shard started it and it has just ended.
    pub async fn last_word(&self) -> Option<ExitStatus> {
        lock(&self.process).as_ref()?;
        let ended = async {
            loop {
                if let Some(status) = self.exited() {
                    return status;
                }
                sleep(LOOK).await;
            }
        };
        timeout(LAST_WORD, ended).await.ok()
    }

    /// Writes a file of credentials beside the socket. Returns its path.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn credential(&self, what: &str, content: &[u8]) -> io::Result<String> {
        let path = self.path.with_extension(what);
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(&path)?;
        file.write_all(content)?;
        Ok(path.display().to_string())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A driver that was started elsewhere ends by itself, once its socket is closed.
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drivers(directory: &Path, declared: &[&str], patience: Patience) -> Drivers {
        let declared = declared.iter().map(|text| text.parse().unwrap()).collect();
        Drivers::listen(directory, declared, patience).unwrap()
    }

    #[test]
    fn a_declaration_is_a_name_and_perhaps_a_command() {
        for (text, name, command) in [("go", "go", None), ("go=java -cp 'a b' X=y", "go", Some("java -cp 'a b' X=y"))] {
            let declared: Declared = text.parse().unwrap();
            assert_eq!((declared.name.as_str(), declared.command.as_deref()), (name, command));
        }
    }

    #[test]
    fn an_unknown_driver_is_refused_with_the_known_ones() {
        let directory = tempfile::tempdir().unwrap();
        let drivers = drivers(directory.path(), &["b", "a"], Patience::default());
        assert!(drivers.socket("a").is_ok());
        let why = drivers.socket("c").unwrap_err();
        assert_eq!(why, "this shard was started without driver c; it has a, b");
        assert!(Drivers::default().socket("c").unwrap_err().ends_with("it has none"));
    }

    #[test]
    fn credentials_are_for_the_user_and_the_group() {
        let directory = tempfile::tempdir().unwrap();
        let socket = drivers(directory.path(), &["a"], Patience::default()).socket("a").unwrap();
        for content in ["geheim", "neu"] {
            let path = socket.credential("password", content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o007, 0);
        }
        let mode = fs::metadata(directory.path().join("a.sock")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
    }

    #[tokio::test]
    async fn a_driver_that_does_not_come_is_named_with_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let soon = Patience { step: Duration::from_millis(200), ..Patience::default() };
        let absent = drivers(directory.path(), &["absent"], soon).socket("absent").unwrap();
        let Err(Fault::Refused(why)) = absent.session().await else { panic!("it came") };
        assert!(why.starts_with("driver absent: no Hello on ") && why.contains("within 200ms"), "{why}");
        let ended = drivers(directory.path(), &["ended=false"], Patience::default()).socket("ended").unwrap();
        let Err(Fault::Broken(why)) = ended.session().await else { panic!("it came") };
        assert_eq!(why, "driver ended: its command ended before Hello: exit status: 1");
    }
}
