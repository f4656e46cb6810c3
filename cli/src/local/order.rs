//! The input of a local run: the manifest with the command line's overrides, validated, and the targets' credentials.

use std::num::NonZero;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use redisbench_benchmark::api::client::ClientType;
use redisbench_benchmark::api::{RedisBenchmark, RedisBenchmarkSpec, RedisBenchmarkStatus, Validated, check_drivers};
use redisbench_benchmark::plan::Plan;
use redisbench_benchmark::report::Subject;
use redisbench_wire::plan::{Sentinels, Tls, Topology, Transport, Trust};

use super::lines;
use super::secrets::{Fields, Secrets};
use crate::arguments::LocalArguments;
use crate::credentials::{Access, Certificates, TargetAccess};
use crate::manifest::{self, Manifest, Problem};
use crate::throwaway::Authority;

/// This process is the only conductor.
pub const EPOCH: u64 = 1;
/// The spec does not change while it runs.
pub const GENERATION: i64 = 1;

#[derive(Clone, Debug)]
pub struct Order {
    pub benchmark: RedisBenchmark,
    pub plan: Plan,
    /// In the order of the plan's targets.
    pub access: Vec<TargetAccess>,
    /// The names and contents of the files of values, keys and the recording.
    pub files: Vec<(&'static str, String)>,
    /// The needed drivers: name and command.
    pub drivers: Vec<(String, String)>,
    /// Deviations from the manifest.
    pub notes: Vec<String>,
    /// Ignored objects in the manifest's file.
    pub skipped: Vec<String>,
}

/// Validates `manifest` with the overrides in `arguments`.
///
/// # Errors
/// All problems of the manifest and its Secrets.
pub fn read(arguments: &LocalArguments, manifest: Manifest) -> Result<Order, Vec<Problem>> {
    let mut benchmark = manifest.benchmark;
    if let Some(shards) = arguments.shards {
        benchmark.spec.shards.count = shards;
    }
    for (field, set) in [("spec.suspend", benchmark.spec.suspend), ("spec.abort", benchmark.spec.abort)] {
        if set {
            let message = "true: prevents a local run from starting; remove it".to_owned();
            return Err(vec![Problem::field(field, message)]);
        }
    }
    let mut notes = Vec::new();
    let before = benchmark.spec.comparison.as_ref().and_then(|comparison| comparison.benchmark.clone());
    if let (Some(before), true) = (&before, arguments.with_redis) {
        benchmark.spec.comparison = None;
        notes.push(format!("spec.comparison.benchmark: ignored, as a local run cannot read {before}"));
    } else if before.is_some() {
        let message = "is a benchmark on a cluster, which a local run cannot read: run it there, or use two targets \
                       and comparison.baseline";
        return Err(vec![Problem::field("spec.comparison.benchmark", message.to_owned())]);
    }
    if arguments.baseline && benchmark.spec.load.clients.iter().any(|client| client.kind != ClientType::Engine) {
        let message = "is not supported with --baseline, which measures the load generator itself: remove one of them";
        return Err(vec![Problem::field("spec.load.clients", message.to_owned())]);
    }
    let plan = manifest::compile(&benchmark)?;
    if arguments.baseline && plan.count() > 1 {
        let spec = &benchmark.spec;
        let (field, way_out) = match (spec.sweep.is_empty(), spec.repeats.count) {
            (false, _) => ("spec.sweep", "remove it"),
            (true, 2..) => ("spec.repeats.count", "remove it"),
            (true, _) => ("spec.workload.preset", "use operations instead"),
        };
        let message = format!("makes {} trials, but --baseline runs one: {way_out}", plan.count());
        return Err(vec![Problem::field(field, message)]);
    }
    if arguments.baseline && benchmark.spec.workload.trace.is_some() {
        let message = "is not supported with --baseline, which replays nothing: remove one of them";
        return Err(vec![Problem::field("spec.workload.trace", message.to_owned())]);
    }
    let secrets = Secrets { documents: &manifest.secrets, directories: &arguments.secret };
    // Throwaway servers have certificates of their own.
    let certificates = !arguments.with_redis;
    let of_target = |spec: &Validated| -> Result<TargetAccess, Problem> {
        let target = &spec.plan.target;
        Ok(TargetAccess {
            servers: secrets.access(&Fields::of_servers(target), &spec.secrets, certificates)?,
            sentinels: secrets.access(&Fields::of_sentinels(target), &spec.sentinel_secrets, certificates)?,
        })
    };
    let access = plan.by_target().into_iter().map(of_target).collect::<Result<Vec<_>, Problem>>()?;
    let of_shards = benchmark.spec.workload.files();
    let texts = of_shards.map(|file| lines::read(file, &manifest.config_maps).map(|text| (file.name, text)));
    let files = texts.collect::<Result<Vec<_>, Problem>>()?;
    let known: Vec<&str> = arguments.driver.iter().map(|(name, _)| name.as_str()).collect();
    let unknown = check_drivers(&benchmark.spec, &known, "start it with --driver NAME=COMMAND");
    if !unknown.is_empty() {
        return Err(unknown.into_iter().map(Problem::from).collect());
    }
    if let Some(twice) = known.iter().enumerate().find_map(|(at, name)| known[..at].contains(name).then_some(*name)) {
        return Err(vec![Problem::field("--driver", format!("{twice}: is given twice: remove one"))]);
    }
    let is_needed = |(name, _): &&(String, String)| plan.drivers().contains(name.as_str());
    let drivers = arguments.driver.iter().filter(is_needed).cloned().collect();
    let skipped = manifest.skipped;
    Ok(Order { benchmark, plan, access, files, drivers, notes, skipped })
}

impl Order {
    pub fn name(&self) -> &str {
        self.benchmark.metadata.name.as_deref().unwrap_or_default()
    }

    /// The same with an edited spec, validated again.
    pub fn edited(&self, edit: impl Fn(&mut RedisBenchmarkSpec)) -> Result<Self, Vec<Problem>> {
        let mut edited = self.clone();
        edit(&mut edited.benchmark.spec);
        edited.plan = manifest::compile(&edited.benchmark)?;
        Ok(edited)
    }

    /// Redirects the target to the null servers at `endpoints`, which have neither TLS nor sentinels.
    pub fn redirect(&mut self, endpoints: Vec<String>) {
        self.plan.retarget(|target| {
            if matches!(target.topology, Topology::Sentinel | Topology::Pool) {
                target.topology = Topology::Standalone;
                target.master_name = None;
                target.sentinels = None;
            }
            target.endpoints.clone_from(&endpoints);
            target.tls = None;
            target.address_map.clear();
        });
        if let Some(target) = self.benchmark.spec.targets.first_mut() {
            target.endpoints = endpoints;
            target.tls = None;
            target.cluster = None;
            if target.sentinel.take().is_some() || target.pool.take().is_some() {
                target.kind = Topology::Standalone;
            }
        }
    }

    /// The folders of the targets' secrets for a shard, parents first.
    pub fn folders(&self) -> Vec<(String, &Access)> {
        let targets = self.plan.by_target().into_iter().zip(&self.access);
        let folders = targets.flat_map(|(spec, access)| {
            let target = &spec.plan.target;
            [(target.folder(), &access.servers), (target.sentinel_folder(), &access.sentinels)]
        });
        folders.collect()
    }

    /// TLS settings of all targets and their sentinels.
    pub fn tls(&self) -> impl Iterator<Item = &Tls> {
        self.plan.by_target().into_iter().flat_map(|spec| {
            let target = &spec.plan.target;
            let own = target.sentinels.as_ref().and_then(|own| own_tls(&own.transport));
            target.tls.iter().chain(own)
        })
    }

    /// Redirects each target to the throwaway servers at its `endpoints`, with certificates of `authority`.
    pub fn replace(&mut self, endpoints: &[(String, Vec<String>)], authority: Option<&Authority>) {
        let of = |name: &str| endpoints.iter().find(|(target, _)| target == name).map(|(_, endpoints)| endpoints);
        // No public authority has signed them.
        let trust = |tls: &mut Tls| {
            if tls.trust == Trust::System {
                tls.trust = Trust::Mounted;
            }
        };
        self.plan.retarget(|target| {
            if let Some(endpoints) = of(&target.name) {
                target.endpoints.clone_from(endpoints);
            }
            target.address_map.clear();
            target.tls.iter_mut().for_each(trust);
            if let Some(Sentinels { transport: Transport::Tls(tls), .. }) = &mut target.sentinels {
                trust(tls);
            }
        });
        let certificates = |tls: Option<&Tls>| {
            let files = authority.zip(tls).map(|(authority, tls)| authority.files(tls));
            Certificates { files: files.unwrap_or_default() }
        };
        for (spec, access) in self.plan.by_target().into_iter().zip(&mut self.access) {
            let target = &spec.plan.target;
            let own = target.sentinels.as_ref().and_then(|own| own_tls(&own.transport));
            access.servers.certificates = certificates(target.tls.as_ref());
            access.sentinels.certificates = certificates(own);
        }
        for target in &mut self.benchmark.spec.targets {
            if let Some(endpoints) = of(&target.name) {
                target.endpoints.clone_from(endpoints);
            }
            if let Some(cluster) = &mut target.cluster {
                cluster.address_map.clear();
            }
        }
    }

    /// Threads per shard. The shards share the machine's processors, and a throwaway server needs some too.
    pub fn workers(&self) -> u32 {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let share = u32::try_from(processors).unwrap_or(u32::MAX) / (self.plan.largest().plan.shards + 1);
        share.max(1)
    }

    /// The object as on the API server once the run `run` has begun.
    pub fn object(&self, run: &str, now: Timestamp) -> RedisBenchmark {
        let mut benchmark = self.benchmark.clone();
        let metadata = &mut benchmark.metadata;
        metadata.namespace.get_or_insert_with(|| "default".to_owned());
        metadata.uid = Some(run.to_owned());
        metadata.generation = Some(GENERATION);
        metadata.creation_timestamp = Some(Time(now));
        let shards = self.plan.trial(0, &[]).map_or(self.plan.largest().plan.shards, |first| first.spec.plan.shards);
        let subject = Subject { spec: &self.benchmark.spec, shards, generation: Some(GENERATION), now };
        let status = benchmark.status.insert(RedisBenchmarkStatus::default());
        status.observed_generation = Some(GENERATION);
        status.run_id = Some(run.to_owned());
        status.conductor_epoch = Some(EPOCH);
        subject.preparing(status, "starting shards");
        benchmark
    }
}

/// TLS settings of the sentinels' own.
fn own_tls(transport: &Transport) -> Option<&Tls> {
    match transport {
        Transport::Tls(tls) => Some(tls),
        Transport::SameAsTarget | Transport::Plain => None,
    }
}
