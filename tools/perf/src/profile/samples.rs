//! Parses samples from the output of `perf script -F ip,sym,dso`: for each sample its frames, innermost first, and an
//! empty line.

/// One frame of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// An address in the kernel, otherwise an offset in the file.
    pub at: u64,
    /// The function, if known.
    pub symbol: String,
    /// The file; `[kernel.kallsyms]` for the kernel.
    pub file: String,
}

/// The addresses of the kernel are in the upper half.
const KERNEL: u64 = 1 << 63;

impl Frame {
    /// True for frames of the kernel.
    pub fn is_kernel(&self) -> bool {
        self.at >= KERNEL
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
    let mut samples = Vec::new();
    let mut frames = Vec::new();
    for line in text.lines().chain([""]) {
        if let Some(frame) = Frame::parse(line) {
            frames.push(frame);
        } else if !frames.is_empty() {
            samples.push(std::mem::take(&mut frames));
        }
    }
    samples
}

/// The group of a kernel sample, from its frames, innermost first. Used in the table, and for the outermost frames of the flame
/// graph.
pub fn kernel_group(frames: &[Frame]) -> &'static str {
    let symbols = || frames.iter().filter(|frame| frame.is_kernel()).map(|frame| frame.symbol.as_str());
    // On loopback, a soft interrupt delivers data to the receiver within the sender's system call.
    let is_soft = symbols().any(|symbol| matches!(symbol, "__do_softirq" | "handle_softirqs" | "do_softirq"));
    let call = symbols().find_map(|symbol| symbol.strip_prefix("__x64_sys_").or(symbol.strip_prefix("__arm64_sys_")));
    let is_interrupt = symbols().any(|symbol| symbol.contains("sysvec_") || symbol.contains("common_interrupt"));
    match call {
        _ if is_interrupt => "interrupts",
        Some("sendto" | "sendmsg" | "write" | "writev") if is_soft => "send: delivery to the server (soft interrupt)",
        Some("sendto" | "sendmsg" | "write" | "writev") => "send: the rest",
        Some("recvfrom" | "recvmsg" | "read" | "readv") => "recv",
        Some(call) if call.starts_with("epoll_") && call != "epoll_ctl" => "epoll_wait",
        Some(_) => STARTING,
        None if symbols().any(|symbol| symbol.contains("entry_SYSCALL") || symbol.contains("el0_svc")) => ENTERING,
        None if symbols().any(|symbol| symbol.contains("page_fault")) => STARTING,
        None => ENTERING,
    }
}

/// One-time work: loading programs, connecting.
pub const STARTING: &str = "starting and connecting";
const ENTERING: &str = "entering and leaving the kernel";

/// Inlined functions at one place in a program, innermost first: their names and source files.
pub type Places = Vec<(String, String)>;

/// The group of a sample in our own code, by the innermost conclusive frame.
pub fn user_group(places: &Places) -> &'static str {
    places.iter().find_map(|(function, source)| group_of_source(function, source)).unwrap_or(STARTING)
}

fn group_of_source(function: &str, source: &str) -> Option<&'static str> {
    let has = |part: &str| source.contains(part);
    Some(match () {
        () if has("/hdrhistogram") || has("/loadgen/src/record") => "recording",
        () if has("/engine/sys.rs") && (function.contains("clock") || function.contains("nanoseconds")) => "clock",
        () if has("/engine/sys.rs") || has("/std/src/sys/net/") || has("/rustix") => "calling the kernel",
        () if has("/loadgen/src/resp/encode") || has("/loadgen/src/workload") => "drawing and encoding",
        () if has("/loadgen/src/schedule") => "schedule",
        () if has("/loadgen/src/resp") || has("/engine/worker/receive.rs") => "receiving and decoding",
        () if has("/engine/worker/send.rs") || has("/engine/worker/dispatch.rs") => "sending",
        () if has("/engine/pipeline.rs") || has("/engine/connection.rs") || has("/engine/queue.rs") => {
            "what is in flight"
        }
        () if has("/loadgen/src/engine") => "the rest of the engine",
        () if has("/perf/src/bin/floor.rs") => "the floor's own loop",
        () => return None,
    })
}

/// The group of a sample in other code.
pub fn library_group(frame: &Frame) -> &'static str {
    match () {
        () if frame.file == "[vdso]" => "clock",
        () if frame.symbol.contains("mem") && frame.file.contains("/libc") => "copying (C library)",
        () if frame.symbol.contains("clock_gettime") => "clock",
        () if frame.file.contains("/libc") => "calling the kernel",
        () => STARTING,
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
        let place = |source: &str| (String::new(), source.to_owned());
        let traffic = place("/x/loadgen/src/engine/worker/receive.rs");
        assert_eq!(
            user_group(&vec![place("/rustc/library/core/src/iter.rs"), traffic.clone()]),
            "receiving and decoding"
        );
        assert_eq!(user_group(&vec![place("/x/loadgen/src/record.rs"), traffic]), "recording");
        assert_eq!(user_group(&vec![place("/rustc/library/core/src/iter.rs")]), STARTING);
        let clock = ("monotonic_nanoseconds".to_owned(), "/x/loadgen/src/engine/sys.rs".to_owned());
        assert_eq!(user_group(&vec![clock]), "clock");
    }
}
