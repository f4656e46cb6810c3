//! The input of a local run: the manifest with the command line's overrides, validated, and the target's credentials.

use std::num::NonZero;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use redisbench_benchmark::api::target::SecretRef;
use redisbench_benchmark::api::{RedisBenchmark, RedisBenchmarkSpec, RedisBenchmarkStatus, Validated};
use redisbench_benchmark::plan::Plan;
use redisbench_benchmark::report::Subject;
use redisbench_wire::plan::{Sentinels, Tls, Topology, Transport, Trust};

use super::GENERATION;
use super::secrets::{SENTINELS, SERVERS, Secrets};
use crate::arguments::LocalArguments;
use crate::credentials::{Certificates, Credentials};
use crate::manifest::{self, Manifest, Problem};
use crate::throwaway::Authority;

#[derive(Clone, Debug)]
pub struct Order {
    pub benchmark: RedisBenchmark,
    pub plan: Plan,
    pub credentials: Option<Credentials>,
    /// The target's TLS files for a shard, by name.
    pub certificates: Certificates,
    /// The sentinels' own files for a shard, by name.
    pub sentinels: Certificates,
    pub sentinel_credentials: Option<Credentials>,
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
    let secrets = Secrets { documents: &manifest.secrets, directories: &arguments.secret };
    let (wanted, own) = (&plan.largest().secrets, &plan.largest().sentinel_secrets);
    let login = |fields, reference: Option<&SecretRef>| {
        reference.map(|reference| secrets.credentials(fields, reference)).transpose()
    };
    let credentials = login(SERVERS, wanted.credentials.as_ref())?;
    let sentinel_credentials = login(SENTINELS, own.credentials.as_ref())?;
    // Throwaway servers have certificates of their own.
    let (certificates, sentinels) = if arguments.with_redis {
        (Certificates::default(), Certificates::default())
    } else {
        (secrets.certificates(SERVERS, wanted)?, secrets.of_sentinels(own)?)
    };
    let skipped = manifest.skipped;
    Ok(Order { benchmark, plan, credentials, certificates, sentinels, sentinel_credentials, notes, skipped })
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
        self.certificates = Certificates::default();
        self.sentinels = Certificates::default();
        if let Some(target) = self.benchmark.spec.targets.first_mut() {
            target.endpoints = endpoints;
            target.tls = None;
            target.cluster = None;
            if target.sentinel.take().is_some() || target.pool.take().is_some() {
                target.kind = Topology::Standalone;
            }
        }
    }

    pub fn by_target(&self) -> Vec<&Validated> {
        let mut found: Vec<&Validated> = Vec::new();
        let trials = self.plan.trials().iter().map(|trial| &trial.spec);
        for spec in trials.chain([self.plan.largest()]) {
            if !found.iter().any(|other| other.plan.target.name == spec.plan.target.name) {
                found.push(spec);
            }
        }
        found
    }

    /// TLS settings of all targets and their sentinels.
    pub fn tls(&self) -> impl Iterator<Item = &Tls> {
        self.by_target().into_iter().flat_map(|spec| {
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
        let files = |tls: Option<&Tls>| Some((authority?, tls?)).map(|(authority, tls)| authority.files(tls));
        let target = &self.plan.largest().plan.target;
        let own = target.sentinels.as_ref().and_then(|own| own_tls(&own.transport));
        self.certificates = Certificates { files: files(target.tls.as_ref()).unwrap_or_default() };
        let own_credentials = self.sentinel_credentials.clone().into_iter().flat_map(Credentials::into_files);
        self.sentinels = Certificates { files: files(own).into_iter().flatten().chain(own_credentials).collect() };
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
        status.conductor_epoch = Some(super::EPOCH);
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
