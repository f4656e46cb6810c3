#!/usr/bin/env python3
"""Renders the chart with Helm and checks what comes out. Needs helm and kubectl in the PATH, and no cluster."""

import functools
import json
import os
import re
import subprocess
import unittest

CHART = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "redisbench-operator")
RELEASE, NAMESPACE = "rel", "redisbench-system"
NAME = "rel-redisbench-operator"

# What the operator calls. A verb that is not here is a verb it does not need.
WORK = {
    ("redisbench.dev", "redisbenchmarks"): {"get", "list", "watch", "delete"},
    ("redisbench.dev", "redisbenchmarks/status"): {"patch"},
    ("batch", "jobs"): {"get", "list", "watch", "create", "delete"},
    ("", "pods"): {"list", "watch", "delete"},
    ("", "secrets"): {"create", "delete"},
    ("policy", "poddisruptionbudgets"): {"create", "delete"},
    ("", "configmaps"): {"get", "create", "patch"},
    ("events.k8s.io", "events"): {"list", "create", "patch"},
}


def helm(command, *arguments):
    return subprocess.run(["helm", command, *arguments], capture_output=True, text=True)


# The chart has no images of its own to name.
IMAGES = ("operator.image.repository=registry.example/operator", "loadgen.image.repository=registry.example/loadgen")


def template(*settings, images=IMAGES):
    arguments = [value for setting in (*images, *settings) for value in ("--set", setting)]
    return helm("template", RELEASE, CHART, "--namespace", NAMESPACE, "--kube-version", "1.36", *arguments)


def parse(manifests):
    """The objects of a rendering, as Kubernetes' own client reads YAML."""
    client = ["kubectl", "annotate", "--local", "-f", "-", "test=", "-o", "json"]
    environment = {**os.environ, "KUBECONFIG": os.devnull}
    text = subprocess.run(client, input=manifests, capture_output=True, text=True, check=True, env=environment).stdout
    decoder, objects = json.JSONDecoder(), []
    while text := text.lstrip():
        found, end = decoder.raw_decode(text)
        objects += found["items"] if found["kind"] == "List" else [found]
        text = text[end:]
    return objects


@functools.cache
def render(*settings):
    answer = template(*settings)
    if answer.returncode != 0:
        raise AssertionError(answer.stderr)
    return parse(answer.stdout)


def pick(objects, kind, name=None):
    found = [o for o in objects if o["kind"] == kind and name in (None, o["metadata"]["name"])]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} objects of kind {kind} and name {name}")
    return found[0]


def verbs(role):
    found = {}
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault((group, resource), set()).update(rule["verbs"])
    return found


class Pods(unittest.TestCase):
    def test_pass_pod_security_restricted(self):
        pod = pick(render(), "Deployment")["spec"]["template"]["spec"]
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            self.assertNotIn(field, pod)
        for container in pod["containers"]:
            context = container["securityContext"]
            self.assertIs(context["allowPrivilegeEscalation"], False)
            self.assertIs(context["readOnlyRootFilesystem"], True)
            self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
        for volume in pod["volumes"]:
            self.assertEqual(set(volume), {"name", "secret"})

    def test_arguments_and_environment_hold_no_secret(self):
        container = pick(render(), "Deployment")["spec"]["template"]["spec"]["containers"][0]
        self.assertIn("--master-key-file=/etc/redisbench/master-key", container["args"])
        self.assertFalse([e for e in container.get("env", []) if "secretKeyRef" in json.dumps(e)])

    def test_arenas_of_the_allocator_are_bounded(self):
        container = pick(render(), "Deployment")["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(container["env"], [{"name": "MALLOC_ARENA_MAX", "value": "2"}])

    def test_images_follow_the_values(self):
        settings = ["operator.image.repository=r/o", "operator.image.tag=t1", "operator.image.pullPolicy=Never"]
        settings += ["loadgen.image.repository=r/l", "loadgen.image.tag=t2", "loadgen.image.pullPolicy=Always"]
        container = pick(render(*settings), "Deployment")["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual((container["image"], container["imagePullPolicy"]), ("r/o:t1", "Never"))
        self.assertIn("--loadgen-image=r/l:t2", container["args"])
        self.assertIn("--loadgen-image-pull-policy=Always", container["args"])

    def test_drivers_are_given_to_the_operator(self):
        arguments = pick(render(), "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
        self.assertFalse([argument for argument in arguments if "driver" in argument])
        settings = ("drivers.redis-py=r/py:2", "drivers.go-redis=r:5000/go:1", "driverResources.limits.cpu=2")
        self.assertIn("clients.image.repository is not", template(*settings).stderr)
        settings = (*settings, "clients.image.repository=r/clients")
        arguments = pick(render(*settings), "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
        images = [argument for argument in arguments if argument.startswith("--driver-image=")]
        self.assertEqual(images, ["--driver-image=go-redis=r:5000/go:1", "--driver-image=redis-py=r/py:2"])
        (resources,) = [argument for argument in arguments if argument.startswith("--driver-resources=")]
        found = json.loads(resources.partition("=")[2])
        self.assertEqual(found, {"limits": {"cpu": "2", "memory": "512Mi"}})

    def test_images_have_no_default(self):
        for image in IMAGES:
            answer = template(images=[other for other in IMAGES if other != image])
            value = image.partition("=")[0]
            self.assertNotEqual(answer.returncode, 0, value)
            self.assertIn(f"{value} is not set", answer.stderr)
            self.assertIn("Dockerfile", answer.stderr)

    def test_the_operator_listens_on_every_interface(self):
        container = pick(render(), "Deployment")["spec"]["template"]["spec"]["containers"][0]
        self.assertFalse([argument for argument in container["args"] if "-address=" in argument])
        self.assertEqual([port["containerPort"] for port in container["ports"]], [8080])

    def test_selectors_find_the_pods(self):
        objects = render()
        labels = pick(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
        for selector in (
            pick(objects, "Deployment")["spec"]["selector"]["matchLabels"],
            pick(objects, "Service")["spec"]["selector"],
        ):
            self.assertLessEqual(selector.items(), labels.items())


class Rights(unittest.TestCase):
    def test_all_namespaces_by_a_cluster_role(self):
        objects = render()
        self.assertEqual(verbs(pick(objects, "ClusterRole", NAME)), WORK)
        binding = pick(objects, "ClusterRoleBinding")
        self.assertEqual(binding["roleRef"]["name"], NAME)
        self.assertEqual(binding["subjects"], [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}])

    def test_named_namespaces_by_a_role_in_each(self):
        objects = render("watchNamespaces={one,two}")
        self.assertFalse([o for o in objects if o["kind"] == "ClusterRoleBinding"])
        roles = {o["metadata"]["namespace"]: o for o in objects if o["kind"] == "Role" and o["metadata"]["name"] == NAME}
        self.assertEqual(set(roles), {"one", "two"})
        for role in roles.values():
            self.assertEqual(verbs(role), WORK)
        bound = {o["metadata"]["namespace"]: o["subjects"] for o in objects if o["kind"] == "RoleBinding"}
        self.assertEqual(set(bound), {"one", "two", NAMESPACE})
        for subjects in bound.values():
            self.assertEqual(subjects, [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}])
        arguments = pick(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
        self.assertIn("--watch-namespaces=one,two", arguments)

    def test_own_namespace_only_holds_the_lease(self):
        role = pick(render(), "Role")
        self.assertEqual(role["metadata"]["namespace"], NAMESPACE)
        self.assertEqual(verbs(role), {("coordination.k8s.io", "leases"): {"create", "get", "update"}})
        for rule in role["rules"]:
            if rule["verbs"] != ["create"]:
                self.assertEqual(rule["resourceNames"], [NAME])

    def test_no_wildcard_and_no_reading_of_secrets(self):
        for objects in (render(), render("watchNamespaces={one}")):
            for role in (o for o in objects if o["kind"] in ("Role", "ClusterRole")):
                for key, allowed in verbs(role).items():
                    self.assertNotIn("*", {*key, *allowed}, role["metadata"]["name"])
                    if key[1] == "secrets":
                        self.assertFalse(allowed & {"get", "list", "watch"})

    def test_aggregated_roles(self):
        objects = render()
        to = "rbac.authorization.k8s.io/aggregate-to-"
        view, edit = pick(objects, "ClusterRole", f"{NAME}-view"), pick(objects, "ClusterRole", f"{NAME}-edit")
        for role, names in ((view, {"view", "edit", "admin"}), (edit, {"edit", "admin"})):
            labels = role["metadata"]["labels"]
            self.assertEqual({l[len(to):] for l in labels if l.startswith(to)}, names)
            self.assertEqual(set(verbs(role)), {("redisbench.dev", "redisbenchmarks")})
        self.assertEqual(verbs(view)[("redisbench.dev", "redisbenchmarks")], {"get", "list", "watch"})
        off = render("aggregatedRoles.create=false")
        self.assertEqual([o["metadata"]["name"] for o in off if o["kind"] == "ClusterRole"], [NAME])


class Parts(unittest.TestCase):
    def test_crd_installs_and_survives(self):
        keep = "helm.sh/resource-policy"
        crd = pick(render(), "CustomResourceDefinition")
        self.assertEqual(crd["metadata"]["name"], "redisbenchmarks.redisbench.dev")
        self.assertEqual(crd["metadata"]["annotations"][keep], "keep")
        crd = pick(render("crds.keep=false"), "CustomResourceDefinition")
        self.assertNotIn(keep, crd["metadata"]["annotations"])
        self.assertFalse([o for o in render("crds.install=false") if o["kind"] == "CustomResourceDefinition"])

    def test_master_key_is_made_or_named(self):
        secret = pick(render(), "Secret")
        self.assertGreaterEqual(len(secret["data"]["master-key"]), 64)
        keep = "helm.sh/resource-policy"
        self.assertEqual(secret["metadata"]["annotations"][keep], "keep")
        secret = pick(render("masterKey.keep=false"), "Secret")
        self.assertNotIn(keep, secret["metadata"].get("annotations", {}))
        objects = render("masterKey.existingSecret=mine")
        self.assertFalse([o for o in objects if o["kind"] == "Secret"])
        volumes = pick(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
        self.assertEqual(volumes[0]["secret"]["secretName"], "mine")

    def test_optional_parts_are_off(self):
        kinds = {o["kind"] for o in render()}
        self.assertFalse(kinds & {"ServiceMonitor", "NetworkPolicy", "PrometheusRule", "ConfigMap"})

    def test_service_monitor(self):
        objects = render("serviceMonitor.enabled=true", "serviceMonitor.labels.release=prom")
        monitor, service = pick(objects, "ServiceMonitor"), pick(objects, "Service")
        self.assertEqual(monitor["metadata"]["labels"]["release"], "prom")
        wanted = monitor["spec"]["selector"]["matchLabels"]
        self.assertLessEqual(wanted.items(), service["metadata"]["labels"].items())
        self.assertEqual(monitor["spec"]["endpoints"][0]["port"], service["spec"]["ports"][0]["name"])
        self.assertNotIn("scrapeNativeHistograms", monitor["spec"])
        monitor = pick(render("serviceMonitor.enabled=true", "serviceMonitor.nativeHistograms=true"), "ServiceMonitor")
        self.assertEqual(monitor["spec"]["scrapeProtocols"][0], "PrometheusProto")
        self.assertIs(monitor["spec"]["scrapeNativeHistograms"], True)

    def test_finished_benchmarks_with_series(self):
        container = pick(render("metrics.finishedBenchmarks=0"), "Deployment")["spec"]["template"]["spec"]["containers"][0]
        self.assertIn("--metrics-finished-benchmarks=0", container["args"])

    def test_snapshots_per_second(self):
        container = pick(render("snapshotsPerSecond=5000"), "Deployment")["spec"]["template"]["spec"]["containers"][0]
        self.assertIn("--snapshots-per-second=5000", container["args"])

    def test_dashboards_are_the_files(self):
        objects = render("dashboards.enabled=true", "dashboards.labels.team=perf")
        maps = [o for o in objects if o["kind"] == "ConfigMap"]
        uids = set()
        for found in maps:
            labels = found["metadata"]["labels"]
            self.assertEqual((labels["grafana_dashboard"], labels["team"]), ("1", "perf"))
            ((name, text),) = found["data"].items()
            with open(os.path.join(CHART, "dashboards", name.removeprefix("redisbench-")), encoding="utf-8") as file:
                self.assertEqual(text, file.read())
            uids.add(json.loads(text)["uid"])
        self.assertEqual(uids, {"redisbench-benchmark", "redisbench-fleet"})

    def test_rules_are_the_file(self):
        rule = pick(render("prometheusRule.enabled=true", "prometheusRule.labels.release=prom"), "PrometheusRule")
        self.assertEqual(rule["metadata"]["labels"]["release"], "prom")
        with open(os.path.join(CHART, "rules.yaml"), encoding="utf-8") as file:
            text = file.read()
        alerts = [r["alert"] for group in rule["spec"]["groups"] for r in group["rules"] if "alert" in r]
        self.assertEqual(alerts, re.findall(r"- alert: (\w+)", text))
        # The templates of the annotations are Prometheus', not Helm's.
        summaries = [r["annotations"]["summary"] for group in rule["spec"]["groups"] for r in group["rules"] if "alert" in r]
        self.assertTrue(any("{{ $labels.benchmark }}" in summary for summary in summaries))

    def test_network_policy_lets_the_operator_in(self):
        objects = render("networkPolicy.enabled=true", "networkPolicy.namespaces={one}")
        policy = pick(objects, "NetworkPolicy")
        self.assertEqual(policy["metadata"]["namespace"], "one")
        shards = {"app.kubernetes.io/name": "redisbench", "app.kubernetes.io/component": "shard"}
        self.assertEqual(policy["spec"]["podSelector"]["matchLabels"], shards)
        (rule,) = policy["spec"]["ingress"]
        (peer,) = rule["from"]
        self.assertEqual(peer["namespaceSelector"]["matchLabels"], {"kubernetes.io/metadata.name": NAMESPACE})
        labels = pick(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
        self.assertLessEqual(peer["podSelector"]["matchLabels"].items(), labels.items())
        self.assertEqual(rule["ports"], [{"protocol": "TCP", "port": 7379}])
        refused = template("networkPolicy.enabled=true")
        self.assertIn("requires networkPolicy.namespaces", refused.stderr)

    def test_every_namespaced_object_names_its_namespace(self):
        cluster = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
        for found in render("serviceMonitor.enabled=true", "dashboards.enabled=true", "prometheusRule.enabled=true"):
            if found["kind"] not in cluster:
                self.assertEqual(found["metadata"]["namespace"], NAMESPACE, found["kind"])


class Values(unittest.TestCase):
    def test_lint(self):
        answer = helm("lint", "--strict", CHART)
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)

    def test_unknown_and_wrong_values_are_refused(self):
        for setting, where in (
            ("replicaCount=1", "replicaCount"),
            ("operator.image.name=x", "name"),
            ("log.format=xml", "/log/format"),
            ("crds.install=maybe", "/crds/install"),
            ("replicas=-1", "/replicas"),
            ("watchNamespaces={Upper}", "/watchNamespaces/0"),
            ("serviceMonitor.interval=soon", "/serviceMonitor/interval"),
            ("metrics.finishedBenchmarks=-1", "/metrics/finishedBenchmarks"),
            ("snapshotsPerSecond=1999", "/snapshotsPerSecond"),
            ("dashboards.folder=x", "folder"),
            ("masterKey.existingSecret=Not A Name", "/masterKey/existingSecret"),
            ("drivers.Go=r/go:1", "Go"),
            ("driverResources.cpu=1", "cpu"),
        ):
            answer = template(setting)
            self.assertNotEqual(answer.returncode, 0, setting)
            self.assertIn(where, answer.stderr)

    def test_every_value_is_in_the_schema(self):
        with open(os.path.join(CHART, "values.schema.json"), encoding="utf-8") as file:
            schema = json.load(file)

        def closed(part, path):
            if part.get("properties"):
                self.assertIs(part.get("additionalProperties"), False, path)
                for name, inner in part["properties"].items():
                    closed(inner, f"{path}/{name}")

        closed(schema, "")
        for name, part in schema["definitions"].items():
            closed(part, name)


if __name__ == "__main__":
    unittest.main()
