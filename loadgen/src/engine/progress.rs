//! The replies so far to a request of several commands.

use crate::resp::Reply;
use crate::workload::Compound;

/// The replies so far to the oldest request of a connection.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub seen: u32,
    pub error: Option<Error>,
    /// True if its only command was answered with null.
    pub nil: bool,
    /// Replicas that acknowledged the write, from WAIT.
    pub acknowledged: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Error {
    pub text: Vec<u8>,
    /// True if the commands may have been executed despite the error.
    pub executed: bool,
}

/// The parts of a reply that matter here.
pub(super) struct Part<'a> {
    pub reply: Reply,
    /// The beginning of the reply.
    pub note: &'a [u8],
    /// The text of an error.
    pub error: &'a [u8],
    /// The text of the first error nested in the reply.
    pub nested: Option<&'a [u8]>,
}

impl Progress {
    /// Takes the next reply. Fails if it violates the protocol.
    pub(super) fn take(&mut self, compound: Compound, part: &Part<'_>) -> Result<(), &'static str> {
        let at = self.seen;
        self.seen += 1;
        let commands = compound.transaction.map_or(1, |size| size.saturating_add(2));
        let is_error = part.reply == Reply::Error;
        if is_error {
            // A single command that failed was not executed. Neither was a transaction with a refused command. WAIT fails separately,
            // after everything was executed.
            self.note_error(part.error, at >= commands);
        }
        if at >= commands {
            self.acknowledged = number(part.note);
            return Ok(());
        }
        match compound.transaction {
            None => self.nil = part.reply == Reply::Nil,
            // After a refused command, EXEC adds no information.
            Some(_) if is_error || self.error.is_some() => {}
            Some(_) if at == 0 && part.note != b"+OK" => return Err("the reply to MULTI was not OK"),
            Some(size) if (1..=size).contains(&at) && part.note != b"+QUEUED" => {
                return Err("the reply to a command of a transaction was not QUEUED");
            }
            Some(size) if at == size.saturating_add(1) => match (part.reply, part.nested) {
                (Reply::Nil, _) => {
                    self.note_error(b"EXECABORT the transaction was not executed: EXEC returned null", false);
                }
                (_, Some(nested)) => self.note_error(nested, true),
                (_, None) if part.note.first() != Some(&b'*') || number(part.note) != Some(size.into()) => {
                    return Err("EXEC did not return a list with a reply per command");
                }
                (_, None) => {}
            },
            Some(_) => {}
        }
        Ok(())
    }

    fn note_error(&mut self, text: &[u8], executed: bool) {
        if self.error.is_none() {
            self.error = Some(Error { text: text.to_vec(), executed });
        }
    }
}

/// The number after the type byte of a line.
fn number(note: &[u8]) -> Option<u64> {
    std::str::from_utf8(note.get(1..)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part<'a>(reply: Reply, note: &'a str, error: &'a str) -> Part<'a> {
        Part { reply, note: note.as_bytes(), error: error.as_bytes(), nested: None }
    }

    fn taken(compound: Compound, parts: &[Part<'_>]) -> Result<Progress, &'static str> {
        let mut progress = Progress::default();
        for part in parts {
            progress.take(compound, part)?;
        }
        assert_eq!(progress.seen, compound.replies());
        Ok(progress)
    }

    const PAIR: Compound = Compound { transaction: Some(2), replicas: None };
    const GOOD: [(&str, Reply); 4] =
        [("+OK", Reply::Value), ("+QUEUED", Reply::Value), ("+QUEUED", Reply::Value), ("*2", Reply::Value)];

    fn good() -> Vec<Part<'static>> {
        GOOD.iter().map(|(note, reply)| part(*reply, note, "")).collect()
    }

    #[test]
    fn a_transaction_is_taken_whole() {
        let progress = taken(PAIR, &good()).unwrap();
        assert!(progress.error.is_none() && !progress.nil);
    }

    #[test]
    fn what_is_not_queued_is_no_transaction() {
        for (at, note) in [(0, "+QUEUED"), (1, "+OK"), (2, ":1"), (3, "*1"), (3, "+OK")] {
            let mut parts = good();
            parts[at].note = note.as_bytes();
            assert!(taken(PAIR, &parts).is_err(), "{at} {note}");
        }
    }

    #[test]
    fn the_first_error_is_the_one_that_counts() {
        let mut parts = good();
        parts[1] = part(Reply::Error, "-MOVED 1 a:1", "MOVED 1 a:1");
        parts[3] = part(Reply::Error, "-EXECABORT", "EXECABORT Transaction discarded");
        let error = taken(PAIR, &parts).unwrap().error.unwrap();
        assert_eq!((error.text.as_slice(), error.executed), (&b"MOVED 1 a:1"[..], false));
        let mut parts = good();
        parts[3].nested = Some(b"WRONGTYPE of a key");
        let error = taken(PAIR, &parts).unwrap().error.unwrap();
        assert_eq!((error.text.as_slice(), error.executed), (&b"WRONGTYPE of a key"[..], true));
    }

    #[test]
    fn wait_tells_how_many_replicas_have_it() {
        let waiting = Compound { transaction: None, replicas: Some(2) };
        let progress = taken(waiting, &[part(Reply::Nil, "$-1", ""), part(Reply::Value, ":1", "")]).unwrap();
        assert_eq!((progress.acknowledged, progress.nil), (Some(1), true));
        let refused = part(Reply::Error, "-ERR", "ERR WAIT cannot be used with replica instances");
        let error = taken(waiting, &[part(Reply::Value, "+OK", ""), refused]).unwrap().error.unwrap();
        assert!(error.executed, "what was written stays written");
    }
}
