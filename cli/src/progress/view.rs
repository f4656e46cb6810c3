//! The view of a terminal: folds the benchmark into the model, and draws it.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use redisbench_benchmark::api::RedisBenchmark;

use super::model::Model;
use super::screen::{self, Screen};

/// Drawing takes processor time that a load generator on this machine may need.
const DRAW_INTERVAL: Duration = Duration::from_millis(250);

/// A view on standard error. Gives the terminal back on drop.
#[derive(Debug)]
pub struct View {
    model: Model,
    /// None before the first frame, and after [`Self::clear`].
    screen: Option<Screen>,
    drawn: Option<Instant>,
    /// Notes to print when the terminal is given back.
    notes: Vec<String>,
}

impl View {
    /// None if standard error is no terminal that can draw, belongs to another job of the shell, or has the log.
    pub fn open() -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
        let logs = std::env::var_os("REDISBENCH_LOG").is_some();
        let possible = io::stderr().is_terminal() && !dumb && !logs && screen::is_ours();
        possible.then(|| Self { model: Model::default(), screen: None, drawn: None, notes: Vec::new() })
    }

    pub fn show(&mut self, benchmark: &RedisBenchmark, now: Timestamp) {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < DRAW_INTERVAL) {
            return;
        }
        self.drawn = Some(Instant::now());
        self.model.update(benchmark, now);
        if self.screen.is_none() {
            self.screen = Screen::enter().ok();
        }
        if let Some(screen) = &mut self.screen {
            // A terminal that is gone ends the program by its signal.
            let _ = screen.draw(&self.model);
        }
    }

    pub fn note(&mut self, text: &str) {
        if self.screen.is_none() {
            eprintln!("{text}");
            return;
        }
        self.model.note(text);
        self.notes.push(text.to_owned());
    }

    pub fn clear(&mut self) {
        self.screen = None;
        self.drawn = None;
        for note in self.notes.drain(..) {
            eprintln!("{note}");
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.clear();
    }
}
