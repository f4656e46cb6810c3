//! Parses samples from the output of `perf script -F ip,sym,dso`: for each sample its frames, innermost first, and an
//! empty line.

use super::symbols::Place;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// An address in the kernel, otherwise an offset in the file.
    pub at: u64,
    /// The function, if known.
    pub symbol: String,
    /// The file; `[kernel.kallsyms]` for the kernel.
    pub file: String,
}

impl Frame {
    /// True for frames of the kernel, whose addresses are in the upper half.
    pub fn is_kernel(&self) -> bool {
        self.at >= 1 << 63
    }

    fn parse(line: &str) -> Option<Self> {
        let (at, rest) = line.trim().split_once(' ')?;
        let (symbol, file) = rest.rsplit_once(" (").unwrap_or((rest, ""));
        let at = u64::from_str_radix(at, 16).ok()?;
        Some(Self { at, symbol: symbol.to_owned(), file: file.trim_end_matches(')').to_owned() })
    }
}

/// All samples, each with its frames, innermost first.
pub fn parse(text: &str) -> Vec<Vec<Frame>> {
    let frames: Vec<Option<Frame>> = text.lines().map(Frame::parse).collect();
    let samples = frames.split(Option::is_none).filter(|sample| !sample.is_empty());
    samples.map(|sample| sample.iter().flatten().cloned().collect()).collect()
}

/// The group of a kernel sample, from its frames, innermost first. Used in the table, and for the outermost frames of the flame
/// graph.
pub fn kernel_group(frames: &[Frame]) -> &'static str {
    let has = |parts: &[&str]| {
        let mut kernel = frames.iter().filter(|frame| frame.is_kernel());
        kernel.any(|frame| parts.iter().any(|part| frame.symbol.contains(part)))
    };
    // Such as `__x64_sys_sendto`.
    match frames.iter().find_map(|frame| Some(frame.symbol.split_once("64_sys_")?.1)) {
        _ if has(&["sysvec_", "common_interrupt"]) => "interrupts",
        // On loopback, a soft interrupt delivers data to the receiver within the sender's system call.
        Some("sendto" | "sendmsg" | "write" | "writev") if has(&["do_softirq", "handle_softirqs"]) => {
            "send: delivery to the server (soft interrupt)"
        }
        Some("sendto" | "sendmsg" | "write" | "writev") => "send: the rest",
        Some("recvfrom" | "recvmsg" | "read" | "readv") => "recv",
        Some(call) if call.starts_with("epoll_") && call != "epoll_ctl" => "epoll_wait",
        Some(_) => STARTING,
        None if !has(&["entry_SYSCALL", "el0_svc"]) && has(&["page_fault"]) => STARTING,
        None => "entering and leaving the kernel",
    }
}

/// One-time work: loading programs, connecting.
const STARTING: &str = "starting and connecting";

/// The groups of our own code, by parts of a source file's path. The first that fits counts.
const SOURCES: [(&str, &[&str]); 9] = [
    ("recording", &["/hdrhistogram", "/loadgen/src/record"]),
    ("calling the kernel", &["/loadgen/src/sys.rs", "/std/src/sys/net/", "/rustix"]),
    ("drawing and encoding", &["/loadgen/src/resp/encode", "/loadgen/src/workload"]),
    ("schedule", &["/loadgen/src/schedule"]),
    ("receiving and decoding", &["/loadgen/src/resp", "/engine/worker/receive.rs"]),
    ("sending", &["/engine/worker/send.rs", "/engine/worker/dispatch.rs"]),
    ("what is in flight", &["/engine/pipeline.rs", "/engine/connection", "/engine/queue.rs"]),
    ("the rest of the engine", &["/loadgen/src/engine"]),
    ("the floor's own loop", &["/perf/src/bin/floor.rs"]),
];

/// The group of a sample in our own code, by the innermost conclusive place.
pub fn user_group(places: &[Place]) -> &'static str {
    let group = |(function, source): &Place| {
        let has = |parts: &[&str]| parts.iter().any(|part| source.contains(part));
        let is_clock = function.contains("clock") || function.contains("nanoseconds");
        match SOURCES.iter().find(|(_, parts)| has(parts)) {
            Some(_) if is_clock && has(&["/loadgen/src/sys.rs"]) => Some("clock"),
            found => found.map(|(group, _)| *group),
        }
    };
    places.iter().find_map(group).unwrap_or(STARTING)
}

/// The group of a sample in other code.
pub fn library_group(frame: &Frame) -> &'static str {
    let in_libc = frame.file.contains("/libc");
    match frame.symbol.as_str() {
        _ if frame.file == "[vdso]" => "clock",
        symbol if in_libc && symbol.contains("mem") => "copying (C library)",
        symbol if symbol.contains("clock_gettime") => "clock",
        _ if in_libc => "calling the kernel",
        _ => STARTING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
\tffffffff81ff6ab5 tcp_v4_rcv ([kernel.kallsyms])
\tffffffff82031322 handle_softirqs ([kernel.kallsyms])
\tffffffff81e30f64 __x64_sys_sendto ([kernel.kallsyms])
\t          10a7c0 __send (/usr/lib/x86_64-linux-gnu/libc.so.6)


\t           15c78 do_it::<impl x (y)>::z (/opt/drive)
\t               0 [unknown] ([unknown])

";

    #[test]
    fn samples_are_told_apart_and_named() {
        let samples = parse(TEXT);
        assert_eq!(samples.iter().map(Vec::len).collect::<Vec<_>>(), [4, 2]);
        assert_eq!(kernel_group(&samples[0]), "send: delivery to the server (soft interrupt)");
        assert_eq!(kernel_group(&samples[0][2..]), "send: the rest");
        let frame = &samples[1][0];
        assert_eq!((frame.at, frame.file.as_str(), frame.is_kernel()), (0x15c78, "/opt/drive", false));
        assert_eq!(frame.symbol, "do_it::<impl x (y)>::z");
        assert_eq!(library_group(&samples[0][3]), "calling the kernel");
    }

    #[test]
    fn the_innermost_frame_that_tells_decides() {
        let place = |function: &str, source: &str| (function.to_owned(), source.to_owned());
        let library = place("next", "/rustc/library/core/src/iter.rs");
        let receive = place("receive", "/x/loadgen/src/engine/worker/receive.rs");
        assert_eq!(user_group(&[library.clone(), receive.clone()]), "receiving and decoding");
        assert_eq!(user_group(&[place("add", "/x/loadgen/src/record.rs"), receive]), "recording");
        assert_eq!(user_group(&[library]), STARTING);
        let sys = "/x/loadgen/src/sys.rs";
        assert_eq!(user_group(&[place("monotonic_nanoseconds", sys)]), "clock");
        assert_eq!(user_group(&[place("send", sys)]), "calling the kernel");
    }
}
