#!/usr/bin/python3
"""CNI plugin: limits a pod to the bandwidth of its annotations, in both directions, from the first packet.

Like the plugin "bandwidth", it uses `kubernetes.io/ingress-bandwidth` and `kubernetes.io/egress-bandwidth`, which the runtime
passes as the capability `bandwidth`. That plugin also applies the runtime's burst of 256 MiB, which passes at full speed, and it
needs a device that not every kernel has. This one puts a token bucket of BURST at each end of the pod's veth pair.
"""
import json
import os
import subprocess
import sys

BURST = "32kb"
# The longest queueing delay; further packets are dropped.
LATENCY = "100ms"


def shape(enter, device, bits):
    bucket = ["tbf", "rate", f"{bits}bit", "burst", BURST, "latency", LATENCY]
    # The plugin's result is its standard output.
    subprocess.run([*enter, "tc", "qdisc", "replace", "dev", device, "root", *bucket], check=True, stdout=sys.stderr)


def main():
    command = os.environ["CNI_COMMAND"]
    if command == "VERSION":
        json.dump({"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}, sys.stdout)
        return
    config = json.load(sys.stdin)
    if command != "ADD":
        return
    result = config["prevResult"]
    # containerd capitalises their names.
    given = config.get("runtimeConfig", {}).get("bandwidth") or {}
    bandwidth = {name[0].lower() + name[1:]: value for name, value in given.items()}
    if bandwidth.get("egressRate"):
        enter = ["nsenter", f"--net={os.environ['CNI_NETNS']}", "--"]
        shape(enter, os.environ["CNI_IFNAME"], bandwidth["egressRate"])
    if bandwidth.get("ingressRate"):
        hosts = [one["name"] for one in result["interfaces"] if not one.get("sandbox") and one["name"].startswith("veth")]
        shape([], hosts[0], bandwidth["ingressRate"])
    json.dump(result, sys.stdout)


try:
    main()
except Exception as error:  # the runtime shows it in the pod's events
    json.dump({"cniVersion": "1.0.0", "code": 100, "msg": f"failed to shape the pod's network: {error}"}, sys.stdout)
    sys.exit(1)
