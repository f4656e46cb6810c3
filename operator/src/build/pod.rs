use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, ConfigMapProjection, Container, ContainerPort, EmptyDirVolumeSource, EnvVar, EnvVarSource,
    KeyToPath, ObjectFieldSelector, PodAffinityTerm, PodAntiAffinity, PodSecurityContext, PodSpec, PodTemplateSpec,
    ProjectedVolumeSource, ResourceRequirements, SeccompProfile, SecretProjection, SecretVolumeSource, SecurityContext,
    TopologySpreadConstraint, Volume, VolumeMount, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use redisbench_benchmark::api::Validated;
use redisbench_benchmark::api::file::ShardFile;
use redisbench_benchmark::api::spec::Placement;
use redisbench_benchmark::api::target::TargetSecrets;
use redisbench_benchmark::conductor::GRACE_PERIOD;
use redisbench_benchmark::plan::Plan;

use super::{CONTAINER, CONTROL_PORT, JobInput, RUN_LABEL, Run};

const IDENTITY_VOLUME: &str = "identity";
const IDENTITY_PATH: &str = "/etc/redisbench/identity";
const TARGETS_VOLUME: &str = "targets";
const TARGETS_PATH: &str = "/etc/redisbench/targets";
const DATA_VOLUME: &str = "data";
const DATA_PATH: &str = "/etc/redisbench/data";
const SOCKETS_VOLUME: &str = "drivers";
const SOCKETS_PATH: &str = "/run/redisbench";
/// Room for sockets and credentials.
const SOCKETS_BYTES: &str = "1Mi";
const HOSTNAME_KEY: &str = "kubernetes.io/hostname";
/// Any user but root; the same number as in the image.
const USER: i64 = 65532;
/// Drivers share a shard's processes and its group, but cannot read its credentials.
const DRIVER_USER: i64 = 65533;
/// Owner and group may read. The group is the pod's, because Secrets belong to root.
const SECRET_MODE: i32 = 0o440;
/// Of the grace period, kept for the process to exit by itself.
const EXIT_SECONDS: u64 = 2;

pub(super) fn template(input: &JobInput<'_>) -> PodTemplateSpec {
    let user = &input.spec().shards.template;
    // Ours last, so that users cannot override them.
    let mut labels = user.labels.clone();
    labels.extend(input.run.labels());
    labels.insert("sidecar.istio.io/inject".into(), "false".into());
    let mut annotations = user.annotations.clone();
    annotations.extend(
        [
            ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
            ("karpenter.sh/do-not-disrupt", "true"),
            ("kuma.io/sidecar-injection", "disabled"),
            ("linkerd.io/inject", "disabled"),
            ("sidecar.istio.io/inject", "false"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels), annotations: Some(annotations), ..ObjectMeta::default() }),
        spec: Some(spec(input)),
    }
}

fn spec(input: &JobInput<'_>) -> PodSpec {
    let user = &input.spec().shards.template;
    PodSpec {
        affinity: affinity(input),
        automount_service_account_token: Some(false),
        containers: vec![container(input)],
        dns_config: user.dns_config.clone(),
        enable_service_links: Some(false),
        init_containers: Some(drivers(input)).filter(|list| !list.is_empty()),
        image_pull_secrets: Some(user.image_pull_secrets.clone()).filter(|list| !list.is_empty()),
        node_selector: Some(user.node_selector.clone()).filter(|map| !map.is_empty()),
        priority_class_name: user.priority_class_name.clone(),
        restart_policy: Some("Never".into()),
        runtime_class_name: user.runtime_class_name.clone(),
        scheduler_name: user.scheduler_name.clone(),
        // So that a shard can read the processor time of its drivers.
        share_process_namespace: Some(true).filter(|_| !input.plan.drivers().is_empty()),
        security_context: Some(PodSecurityContext {
            fs_group: Some(USER),
            run_as_group: Some(USER),
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".into(), localhost_profile: None }),
            ..PodSecurityContext::default()
        }),
        termination_grace_period_seconds: i64::try_from(GRACE_PERIOD.as_secs()).ok(),
        tolerations: Some(user.tolerations.clone()).filter(|list| !list.is_empty()),
        topology_spread_constraints: Some(spread(input)).filter(|list| !list.is_empty()),
        volumes: Some(volumes(input)),
        ..PodSpec::default()
    }
}

fn container(input: &JobInput<'_>) -> Container {
    let mut args = vec!["shard", "--identity", IDENTITY_PATH];
    let mut mounts = vec![(IDENTITY_VOLUME, IDENTITY_PATH)];
    if !target_secrets(input.plan).is_empty() {
        args.extend(["--targets", TARGETS_PATH]);
        mounts.push((TARGETS_VOLUME, TARGETS_PATH));
    }
    if input.spec().spec.workload.files().next().is_some() {
        args.extend(["--data", DATA_PATH]);
        mounts.push((DATA_VOLUME, DATA_PATH));
    }
    let drivers = input.plan.drivers();
    if !drivers.is_empty() {
        args.extend(["--sockets", SOCKETS_PATH]);
    }
    args.extend(drivers.iter().flat_map(|name| ["--driver", *name]));
    // As long as an armed shard waits: the operator plans a shard as soon as it runs, unless the run has begun without it.
    let idle_limit = Duration::from_nanos(input.spec().plan.limits.armed_nanoseconds).as_secs().to_string();
    let stay = GRACE_PERIOD.as_secs().saturating_sub(EXIT_SECONDS).to_string();
    args.extend(["--idle-limit", idle_limit.as_str(), "--stay", stay.as_str()]);
    Container {
        name: CONTAINER.into(),
        image: Some(input.image.to_owned()),
        image_pull_policy: Some(input.pull_policy.to_owned()),
        args: Some(args.into_iter().map(str::to_owned).collect()),
        env: Some(vec![
            EnvVar { name: "REDISBENCH_RUN".into(), value: Some(input.run.id.clone()), value_from: None },
            field("REDISBENCH_INCARNATION", "metadata.uid"),
            field("REDISBENCH_HOST", "spec.nodeName"),
        ]),
        ports: Some(vec![ContainerPort {
            name: Some("control".into()),
            container_port: i32::from(CONTROL_PORT),
            ..ContainerPort::default()
        }]),
        resources: Some(resources(input.spec().shards.template.resources.as_ref())),
        security_context: Some(restricted()),
        // The last log lines of a shard explain a failure.
        termination_message_policy: Some("FallbackToLogsOnError".into()),
        volume_mounts: Some(
            mounts
                .into_iter()
                .map(|(name, path)| VolumeMount {
                    name: name.into(),
                    mount_path: path.into(),
                    read_only: Some(true),
                    ..VolumeMount::default()
                })
                .chain(Some(sockets()).filter(|_| !drivers.is_empty()))
                .collect(),
        ),
        ..Container::default()
    }
}

/// The containers of the drivers that the plan names. As sidecars, they end with the shard, and their ends do not fail its pod.
fn drivers(input: &JobInput<'_>) -> Vec<Container> {
    let container = |name: &str| Container {
        name: format!("driver-{name}"),
        image: input.drivers.images.get(name).cloned(),
        image_pull_policy: Some(input.pull_policy.to_owned()),
        env: Some(vec![EnvVar {
            name: "REDISBENCH_DRIVER_SOCKET".into(),
            value: Some(format!("{SOCKETS_PATH}/{name}.sock")),
            value_from: None,
        }]),
        resources: Some(resources(input.drivers.resources.as_ref())),
        restart_policy: Some("Always".into()),
        security_context: Some(SecurityContext { run_as_user: Some(DRIVER_USER), ..restricted() }),
        termination_message_policy: Some("FallbackToLogsOnError".into()),
        // It connects to a socket, and must not take the room of the shard's.
        volume_mounts: Some(vec![VolumeMount { read_only: Some(true), ..sockets() }]),
        ..Container::default()
    };
    input.plan.drivers().into_iter().map(container).collect()
}

fn sockets() -> VolumeMount {
    VolumeMount { name: SOCKETS_VOLUME.into(), mount_path: SOCKETS_PATH.into(), ..VolumeMount::default() }
}

/// As the Pod Security profile `restricted` demands, together with the pod's.
fn restricted() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add: None }),
        read_only_root_filesystem: Some(true),
        ..SecurityContext::default()
    }
}

fn field(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.into(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector { field_path: path.into(), api_version: None }),
            ..EnvVarSource::default()
        }),
    }
}

/// Requests and limits. Both are the same unless both are given, so that a shard's speed does not depend on its neighbours.
fn resources(given: Option<&ResourceRequirements>) -> ResourceRequirements {
    let mut resources = given.cloned().unwrap_or_default();
    let mut limits = resources.limits.take().unwrap_or_default();
    let mut requests = resources.requests.take().unwrap_or_default();
    for (name, default) in [("cpu", "1"), ("memory", "256Mi")] {
        if !limits.contains_key(name) && !requests.contains_key(name) {
            limits.insert(name.into(), Quantity(default.into()));
        }
    }
    let given_limits = limits.clone();
    limits.extend(requests.iter().filter(|(name, _)| !given_limits.contains_key(*name)).map(owned));
    let given_requests = requests.clone();
    requests.extend(limits.iter().filter(|(name, _)| !given_requests.contains_key(*name)).map(owned));
    ResourceRequirements { limits: Some(limits), requests: Some(requests), ..resources }
}

fn owned((name, quantity): (&String, &Quantity)) -> (String, Quantity) {
    (name.clone(), quantity.clone())
}

fn affinity(input: &JobInput<'_>) -> Option<Affinity> {
    let user = input.spec().shards.template.affinity.clone();
    if input.spec().shards.placement != Placement::OnePerNode {
        return user;
    }
    let mut affinity = user.unwrap_or_default();
    let anti: &mut PodAntiAffinity = affinity.pod_anti_affinity.get_or_insert_default();
    anti.required_during_scheduling_ignored_during_execution.get_or_insert_default().push(PodAffinityTerm {
        label_selector: Some(selector(input.run)),
        topology_key: HOSTNAME_KEY.into(),
        ..PodAffinityTerm::default()
    });
    Some(affinity)
}

fn spread(input: &JobInput<'_>) -> Vec<TopologySpreadConstraint> {
    let mut constraints = input.spec().shards.template.topology_spread_constraints.clone();
    for constraint in &mut constraints {
        // A constraint without a selector matches no pods, which is never intended.
        constraint.label_selector.get_or_insert_with(|| selector(input.run));
    }
    if constraints.is_empty() && input.spec().shards.placement == Placement::Spread {
        constraints.push(TopologySpreadConstraint {
            label_selector: Some(selector(input.run)),
            max_skew: 1,
            topology_key: HOSTNAME_KEY.into(),
            when_unsatisfiable: "ScheduleAnyway".into(),
            ..TopologySpreadConstraint::default()
        });
    }
    constraints
}

pub(super) fn selector(run: &Run) -> LabelSelector {
    LabelSelector {
        match_labels: Some(BTreeMap::from([(RUN_LABEL.to_owned(), run.id.clone())])),
        match_expressions: None,
    }
}

fn volumes(input: &JobInput<'_>) -> Vec<Volume> {
    let mut volumes = vec![secret_volume(IDENTITY_VOLUME, input.run.child_name())];
    let sources = target_secrets(input.plan);
    if !sources.is_empty() {
        volumes.push(Volume {
            name: TARGETS_VOLUME.into(),
            projected: Some(ProjectedVolumeSource { default_mode: Some(SECRET_MODE), sources: Some(sources) }),
            ..Volume::default()
        });
    }
    let files: Vec<_> = input.spec().spec.workload.files().map(file).collect();
    if !files.is_empty() {
        volumes.push(Volume {
            name: DATA_VOLUME.into(),
            projected: Some(ProjectedVolumeSource { default_mode: None, sources: Some(files) }),
            ..Volume::default()
        });
    }
    if !input.plan.drivers().is_empty() {
        volumes.push(Volume {
            name: SOCKETS_VOLUME.into(),
            // In memory, because it has passwords.
            empty_dir: Some(EmptyDirVolumeSource {
                medium: Some("Memory".into()),
                size_limit: Some(Quantity(SOCKETS_BYTES.into())),
            }),
            ..Volume::default()
        });
    }
    volumes
}

/// A file of values or keys, under the shard's name of it.
fn file(ShardFile { name, source, .. }: ShardFile<'_>) -> VolumeProjection {
    let config_map = ConfigMapProjection {
        name: source.name.clone(),
        items: Some(vec![item(&source.key, name.to_owned())]),
        // Otherwise the pod would wait without end. The shard reports a missing file.
        optional: Some(true),
    };
    VolumeProjection { config_map: Some(config_map), ..VolumeProjection::default() }
}

/// The Secrets of all targets, each in its target's folder, because a pod serves trials of several targets.
fn target_secrets(plan: &Plan) -> Vec<VolumeProjection> {
    let of_target = |spec: &Validated| {
        let target = &spec.plan.target;
        let servers = projections(&spec.secrets, &target.folder());
        servers.into_iter().chain(projections(&spec.sentinel_secrets, &target.sentinel_folder()))
    };
    plan.by_target().into_iter().flat_map(of_target).collect()
}

/// The files of `secrets` in `folder`. Credentials, authorities and certificate may come from three Secrets.
fn projections(secrets: &TargetSecrets, folder: &str) -> Vec<VolumeProjection> {
    let credentials = secrets.credentials.as_ref().map(|secret| {
        let username = secret.username_key.as_deref().map(|key| (key, "username"));
        let files: Vec<_> = [(secret.password_key.as_str(), "password")].into_iter().chain(username).collect();
        (&secret.name, files)
    });
    let authorities = secrets.authorities.as_ref().map(|secret| (&secret.name, vec![(secret.key.as_str(), "ca.crt")]));
    let certificate =
        secrets.certificate.as_ref().map(|secret| (&secret.name, vec![("tls.crt", "tls.crt"), ("tls.key", "tls.key")]));
    let all = credentials.into_iter().chain(authorities).chain(certificate);
    all.map(|(name, files)| VolumeProjection {
        secret: Some(SecretProjection {
            name: name.clone(),
            items: Some(files.into_iter().map(|(key, file)| item(key, format!("{folder}/{file}"))).collect()),
            optional: None,
        }),
        ..VolumeProjection::default()
    })
    .collect()
}

fn item(key: &str, path: String) -> KeyToPath {
    KeyToPath { key: key.to_owned(), path, mode: None }
}

fn secret_volume(name: &str, secret: String) -> Volume {
    Volume {
        name: name.into(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret),
            default_mode: Some(SECRET_MODE),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}
