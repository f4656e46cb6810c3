//! The terminal as a screen: taken and given back, also on a panic.
//!
//! Keys stay with the terminal, so that Ctrl-C is the signal that it always is; they are only not echoed.

use std::io::{self, BufWriter, Stderr, Write as _};
use std::panic;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::force_color_output;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr};

use super::frame;
use super::model::Model;
use crate::render::Paint;

/// Set while the screen is taken.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);
static HOOK: Once = Once::new();

struct Taken {
    /// The settings of the terminal.
    before: Option<Termios>,
}

/// The terminal of standard error. Given back on drop.
#[derive(Debug)]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// If it cannot be written, or has no size.
    pub fn enter() -> io::Result<Self> {
        HOOK.call_once(|| {
            let print = panic::take_hook();
            // Without this, the message would be on the screen that the panic's end removes.
            panic::set_hook(Box::new(move |panic| {
                restore();
                print(panic);
            }));
        });
        force_color_output(Paint::for_stream(true).is_enabled());
        *taken() = Some(Taken { before: silence() });
        let entered = execute!(io::stderr(), EnterAlternateScreen, Hide);
        let terminal = entered.and_then(|()| Terminal::new(CrosstermBackend::new(BufWriter::new(io::stderr()))));
        terminal.map(|terminal| Self { terminal }).inspect_err(|_| restore())
    }

    /// Draws a frame of the terminal's present size.
    pub fn draw(&mut self, model: &Model) -> io::Result<()> {
        self.terminal.draw(|area| frame::draw(model, area)).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Returns whether this is the job of the terminal that its shell has in the foreground. Any other is stopped when it changes the settings.
pub fn is_ours() -> bool {
    tcgetpgrp(io::stderr()).is_ok_and(|foreground| foreground == getpgrp())
}

/// Stops the echo of keys, and Ctrl-Z, which would leave the shell on this screen. Returns the settings before.
fn silence() -> Option<Termios> {
    let before = tcgetattr(io::stderr()).ok()?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    // Zero is no key.
    quiet.special_codes[SpecialCodeIndex::VSUSP] = 0;
    tcsetattr(io::stderr(), OptionalActions::Now, &quiet).ok()?;
    Some(before)
}

/// Gives the terminal back, if it is taken. Nothing can be done about errors.
fn restore() {
    let Some(Taken { before }) = taken().take() else { return };
    let _ = execute!(io::stderr(), Show, LeaveAlternateScreen);
    let _ = io::stderr().flush();
    if let Some(before) = before {
        // Drops keys that were typed meanwhile, which would be taken for an answer to a prompt.
        let _ = tcsetattr(io::stderr(), OptionalActions::Flush, &before);
    }
}

fn taken() -> MutexGuard<'static, Option<Taken>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}
