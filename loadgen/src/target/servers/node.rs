//! One server's statistics over a trial. Pure: times are readings of the shard's clock.

use std::collections::BTreeMap;

use redisbench_wire::limits;
use redisbench_wire::snapshot::{ServerCpu, ServerNode};

use super::info::{Calls, Info};
use super::mix::MixCommands;
use crate::cluster::NodeAddress;

/// A server's clock is trusted if it ran between half and twice as fast as ours.
const CLOCKS: u64 = 2;
const WHOLE: u128 = 10_000;

#[derive(Clone, Debug)]
pub struct WatchedNode {
    pub address: NodeAddress,
    seen: ServerNode,
    run_id: Option<String>,
    replica: bool,
    /// It refused for good.
    pub refuses: bool,
    /// Why its counts do not belong to this trial alone.
    disturbed: Option<String>,
    before: Option<BTreeMap<String, Calls>>,
    first: Option<CpuReading>,
    last: Option<CpuReading>,
    /// Total forks at the latest answer of the window.
    forks: Option<u64>,
}

/// Processor time at one time.
#[derive(Clone, Copy, Debug)]
struct CpuReading {
    at: u64,
    server_microseconds: Option<u64>,
    main_thread: bool,
    nanoseconds: u64,
    event_loop_microseconds: Option<u64>,
}

impl CpuReading {
    fn of(info: &Info, at: u64) -> Option<Self> {
        let cpu = info.cpu?;
        let Info { server_microseconds, event_loop_microseconds, .. } = *info;
        let (main_thread, nanoseconds) = (cpu.main_thread, cpu.nanoseconds);
        Some(Self { at, server_microseconds, main_thread, nanoseconds, event_loop_microseconds })
    }

    /// Wall time from `self` to `later`. Uses the server's clock, because a busy server answers late.
    fn wall(&self, later: &Self) -> u64 {
        let ours = later.at.saturating_sub(self.at);
        let its = self.server_microseconds.zip(later.server_microseconds);
        let its = its.map(|(from, to)| to.saturating_sub(from).saturating_mul(1_000));
        its.filter(|its| (ours / CLOCKS..=ours.saturating_mul(CLOCKS)).contains(its)).unwrap_or(ours)
    }

    /// Processor time over wall time from `self` to `later`, in hundredths of a per cent.
    fn share(&self, later: &Self) -> u32 {
        self.share_of(later, later.nanoseconds.saturating_sub(self.nanoseconds))
    }

    /// The same for the time that the event loop was awake.
    fn event_loop(&self, later: &Self) -> Option<u32> {
        let (from, to) = self.event_loop_microseconds.zip(later.event_loop_microseconds)?;
        Some(self.share_of(later, to.saturating_sub(from).saturating_mul(1_000)))
    }

    fn share_of(&self, later: &Self, nanoseconds: u64) -> u32 {
        let share = u128::from(nanoseconds) * WHOLE / u128::from(self.wall(later).max(1));
        u32::try_from(share).unwrap_or(u32::MAX)
    }
}

/// The phase of the trial in which an answer arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the load, which starts at `start`.
    Before {
        start: u64,
    },
    Measuring,
    After,
}

impl WatchedNode {
    /// A server without answers yet.
    pub fn new(address: &NodeAddress) -> Self {
        let seen = ServerNode { id: address.id.clone(), address: address.label.clone(), ..ServerNode::default() };
        Self {
            address: address.clone(),
            seen,
            run_id: None,
            replica: false,
            refuses: false,
            disturbed: None,
            before: None,
            first: None,
            last: None,
            forks: None,
        }
    }

    /// Identifies its process. None before its first answer, or if it does not report one.
    pub fn run_id(&self) -> Option<&str> {
        self.run_id.as_deref()
    }

    /// Notes a failed look.
    pub fn note(&mut self, note: &str) {
        self.seen.note = Some(limits::message(note));
    }

    /// Notes a permanent refusal; the server is not polled again.
    pub fn refuse(&mut self, note: &str) {
        self.note(note);
        self.refuses = true;
    }

    /// Adds an answer that arrived at `at`, with `commands` if they were requested.
    pub fn take(
        &mut self,
        info: &Info,
        commands: Option<BTreeMap<String, Calls>>,
        at: u64,
        when: When,
        mix: &MixCommands,
    ) {
        if self.before.is_some() && (self.run_id != info.run_id || self.replica != info.replica) {
            let what = if self.run_id == info.run_id { "changed its role" } else { "restarted" };
            self.disturbed = Some(format!("{} {what} during the load", self.address.label));
        }
        let sample = redisbench_wire::snapshot::ServerSample { taken_nanoseconds: at, ..info.sample };
        let seen = &mut self.seen;
        seen.most_clients = seen.most_clients.max(sample.connected_clients);
        seen.was_loading |= sample.loading;
        seen.version = info.version.clone().or(seen.version.take());
        seen.busiest_received_bytes_per_second =
            seen.busiest_received_bytes_per_second.max(info.received_bytes_per_second);
        seen.busiest_sent_bytes_per_second = seen.busiest_sent_bytes_per_second.max(info.sent_bytes_per_second);
        match when {
            When::Before { start } => {
                (self.run_id, self.replica) = (info.run_id.clone(), info.replica);
                seen.before = Some(sample);
                if at <= start {
                    self.before = commands;
                } else {
                    self.disturbed = Some(format!("{} replied only after the load started", self.address.label));
                }
            }
            When::Measuring => self.measure(info, at),
            When::After => {
                seen.after = Some(sample);
                let counts = self.before.as_ref().zip(commands.as_ref());
                let between = counts.and_then(|(before, after)| mix.between(before, after, self.replica));
                if counts.is_some() && between.is_none() && self.disturbed.is_none() {
                    self.disturbed = Some(format!("{} reset its counters during the load", self.address.label));
                }
                seen.commands = between.filter(|_| self.disturbed.is_none());
            }
        }
    }

    fn measure(&mut self, info: &Info, at: u64) {
        self.count_forks(info);
        let Some(point) = CpuReading::of(info, at) else { return };
        let Some(first) = self.first else {
            (self.first, self.last) = (Some(point), Some(point));
            return;
        };
        let cpu = self.seen.cpu.get_or_insert_default();
        let last = self.last.unwrap_or(first);
        let latest = last.share(&point);
        let full = if latest >= ServerCpu::FULL_BASIS_POINTS { last.wall(&point) } else { 0 };
        *cpu = ServerCpu {
            main_thread: point.main_thread,
            mean_basis_points: first.share(&point),
            max_basis_points: cpu.max_basis_points.max(latest),
            nanoseconds: first.wall(&point),
            full_nanoseconds: cpu.full_nanoseconds.saturating_add(full),
            event_loop_basis_points: first.event_loop(&point),
        };
        self.last = Some(point);
    }

    fn count_forks(&mut self, info: &Info) {
        self.seen.had_child |= info.has_child;
        // A restarted server counts from 0.
        let more = self.forks.zip(info.forks).map_or(0, |(before, now)| now.checked_sub(before).unwrap_or(now));
        if more > 0 {
            self.seen.forks = self.seen.forks.saturating_add(more);
            self.seen.longest_fork_microseconds =
                self.seen.longest_fork_microseconds.max(info.latest_fork_microseconds);
        }
        self.forks = info.forks.or(self.forks);
    }

    /// All results, or a short form.
    pub fn report(&self, full: bool) -> ServerNode {
        if !full {
            let ServerNode { id, address, cpu, .. } = self.seen.clone();
            return ServerNode { id, address, cpu, ..ServerNode::default() };
        }
        let mut seen = self.seen.clone();
        // A restart also explains a missing answer.
        seen.note = self.disturbed.as_deref().map(limits::message).or(seen.note);
        seen
    }

    /// Mean processor use, in hundredths of a per cent.
    pub fn busy(&self) -> u32 {
        self.seen.cpu.map_or(0, |cpu| cpu.mean_basis_points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn node() -> WatchedNode {
        WatchedNode::new(&NodeAddress { id: "a".into(), address: ([127, 0, 0, 1], 1).into(), label: "a:1".into() })
    }

    fn info(cpu_milliseconds: u64, server_milliseconds: u64) -> Info {
        Info::parse(&format!(
            "run_id:x\nused_cpu_user_main_thread:{}.{:03}\nused_cpu_sys_main_thread:0\nserver_time_usec:{}\n",
            cpu_milliseconds / 1000,
            cpu_milliseconds % 1000,
            server_milliseconds * 1000
        ))
    }

    #[test]
    fn processor_time_is_that_of_the_window_by_the_servers_clock() {
        let mut node = node();
        let mix = MixCommands::default();
        node.take(&info(500, 0), None, SECOND, When::Before { start: 2 * SECOND }, &mix);
        // The answer arrives 200 ms late, which the server's clock does not show.
        node.take(&info(600, 10_000), None, 11 * SECOND, When::Measuring, &mix);
        node.take(&info(1_500, 11_000), None, 12 * SECOND + SECOND / 5, When::Measuring, &mix);
        node.take(&info(2_000, 12_000), None, 13 * SECOND, When::Measuring, &mix);
        let cpu = node.report(false).cpu.unwrap();
        assert_eq!((cpu.main_thread, cpu.mean_basis_points, cpu.max_basis_points), (true, 7_000, 9_000));
        assert_eq!(cpu.nanoseconds, 2 * SECOND);
        // A clock that was set is not trusted.
        node.take(&info(2_500, 99_000_000), None, 14 * SECOND, When::Measuring, &mix);
        assert_eq!(node.report(true).cpu.unwrap().nanoseconds, 3 * SECOND);
    }

    #[test]
    fn seconds_in_which_it_was_full_are_counted() {
        let (mut node, mix) = (node(), MixCommands::default());
        // Busy milliseconds of each second.
        let mut cpu = 0;
        for (second, busy) in (0..).zip([0, 600, 950, 990, 949]) {
            cpu += busy;
            node.take(&info(cpu, second * 1_000), None, second * SECOND, When::Measuring, &mix);
        }
        let cpu = node.report(false).cpu.unwrap();
        assert_eq!((cpu.full_nanoseconds, cpu.nanoseconds, cpu.max_basis_points), (2 * SECOND, 4 * SECOND, 9_900));
    }

    #[test]
    fn what_a_server_waits_for_is_in_its_event_loop() {
        let (mut node, mix) = (node(), MixCommands::default());
        let at =
            |cpu, event_loop, seconds: u64| Info { event_loop_microseconds: event_loop, ..info(cpu, seconds * 1_000) };
        node.take(&at(100, Some(1_000_000), 1), None, SECOND, When::Measuring, &mix);
        node.take(&at(300, Some(2_960_000), 3), None, 3 * SECOND, When::Measuring, &mix);
        let cpu = node.report(false).cpu.unwrap();
        assert_eq!((cpu.mean_basis_points, cpu.event_loop_basis_points), (1_000, Some(9_800)));
        node.take(&at(400, None, 4), None, 4 * SECOND, When::Measuring, &mix);
        assert_eq!(node.report(false).cpu.unwrap().event_loop_basis_points, None);
    }

    #[test]
    fn forks_are_those_of_the_window() {
        let (mut node, mix) = (node(), MixCommands::default());
        let at = |forks, latest_fork_microseconds, has_child| Info {
            forks: Some(forks),
            latest_fork_microseconds,
            has_child,
            ..info(0, 0)
        };
        let mut see = |info: &Info, when: When| {
            node.take(info, None, SECOND, when, &mix);
            let seen = node.report(true);
            (seen.forks, seen.longest_fork_microseconds, seen.had_child)
        };
        assert_eq!(see(&at(3, 900, true), When::Before { start: 2 * SECOND }), (0, 0, false));
        // A fork during the warm-up does not count, but a child that still runs does.
        assert_eq!(see(&at(4, 950, false), When::Measuring), (0, 0, false));
        assert_eq!(see(&at(4, 950, true), When::Measuring), (0, 0, true));
        assert_eq!(see(&at(5, 700, false), When::Measuring), (1, 700, true));
        assert_eq!(see(&at(7, 300, false), When::Measuring), (3, 700, true));
        // The server restarted.
        assert_eq!(see(&at(1, 800, false), When::Measuring), (4, 800, true));
        assert_eq!(see(&at(2, 990, true), When::After), (4, 800, true));
    }

    #[test]
    fn a_server_that_restarted_is_not_compared() {
        let (mut node, mix) = (node(), MixCommands::default());
        let nothing = || Some(BTreeMap::new());
        node.take(&info(0, 0), nothing(), 1, When::Before { start: 2 }, &mix);
        node.take(&info(0, 0), nothing(), 3, When::After, &mix);
        assert!(node.report(true).commands.is_some());
        node.note("it was not there");
        node.take(&Info { run_id: Some("y".into()), ..info(0, 0) }, nothing(), 4, When::After, &mix);
        let seen = node.report(true);
        assert_eq!(seen.commands, None);
        assert!(seen.note.unwrap().contains("restarted"));
    }

    #[test]
    fn an_answer_that_came_too_late_is_not_compared() {
        let (mut node, mix) = (node(), MixCommands::default());
        node.take(&info(0, 0), Some(BTreeMap::new()), 3, When::Before { start: 2 }, &mix);
        node.take(&info(0, 0), Some(BTreeMap::new()), 4, When::After, &mix);
        assert_eq!(node.report(true).commands, None);
    }
}
