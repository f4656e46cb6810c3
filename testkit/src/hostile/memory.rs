//! Peak allocation of a call, counted on its thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with counters. A test binary installs it with `#[global_allocator]`.
#[derive(Debug, Default)]
pub struct Meter;

thread_local! {
    // Constants without a destructor: reading them allocates nothing.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that is ending has no counters, and no measured call.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        PEAK.with(|peak| peak.set(peak.get().max(held.get())));
    });
}

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}

// SAFETY: every call is passed unchanged to the system's allocator; counting does not affect its arguments.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks may exist while the content is copied.
        count(signed(size));
        count(-signed(layout.size()));
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Runs `act`, and returns its peak allocation above the level before. 0 without the [`Meter`].
pub fn peak<T>(act: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let done = act();
    (done, usize::try_from(PEAK.get() - before).unwrap_or(0))
}
