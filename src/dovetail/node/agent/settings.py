"""The settings of `dovetail agent`; its command loads them from file, environment and flags.

They are plain values, so that the command line can show help without importing the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from dovetail.config.declaration import SettingsStruct

GATE = "QoSResourceManager"

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h)"

Duration = Annotated[str, Meta(pattern=f"^(?:{NUMBER})+$")]
"""As Kubernetes writes it: 10s, 1m30s, 500ms."""

Outage = Literal["reject", "retry", "keep-last", "fail-open"]


class PluginSettings(SettingsStruct, frozen=True):
    directories: Annotated[
        tuple[str, ...], Meta(description="Directories in which plugins put their sockets.")
    ] = ("/var/lib/dovetail-agent/plugins",)
    legacy_directory: Annotated[
        str | None,
        Meta(description="Directory of plugins that register by calling `kubelet.sock` in it."),
    ] = None
    names: Annotated[
        Mapping[str, str],
        Meta(description="Resources that the plugin of another name serves: `asked=served,...`."),
    ] = {}


class RuntimeSettings(SettingsStruct, frozen=True):
    backend: Annotated[
        Literal["proxy", "nri", "cri"],
        Meta(
            description="How containers are reached: `proxy` stands between kubelet and runtime, "
            "`nri` is a plugin of the runtime, `cri` only updates what others created."
        ),
    ] = "proxy"
    socket: Annotated[str, Meta(description="Where the container runtime serves CRI.")] = (
        "/run/containerd/containerd.sock"
    )
    listen: Annotated[
        str, Meta(description="Where the proxy serves CRI: the kubelet's runtime endpoint.")
    ] = "/run/dovetail-agent/cri.sock"
    relay: Annotated[
        str | None,
        Meta(
            description="Where the agent answers `dovetail agent relay`, which then serves CRI at "
            "`runtime.listen` and outlives the agent; none: the agent serves it itself."
        ),
    ] = None
    relay_wait: Annotated[
        Duration,
        Meta(description="How long calls that need a decision wait in the relay for the agent."),
    ] = "10s"
    nri_socket: Annotated[str, Meta(description="Where the runtime serves NRI.")] = (
        "/var/run/nri/nri.sock"
    )


class TopologySettings(SettingsStruct, frozen=True):
    policy: Annotated[
        Literal["none", "best-effort", "restricted", "single-numa-node", "numeric"],
        Meta(description="How close the resources of a container must be to each other."),
    ] = "none"
    scope: Annotated[
        Literal["container", "pod"], Meta(description="Whose resources must be close.")
    ] = "container"
    prefer_closest_numa_nodes: Annotated[
        bool, Meta(description="Of as many NUMA nodes, those with the shortest distances.")
    ] = False
    max_allowable_numa_nodes: Annotated[
        int, Meta(ge=8, le=64, description="Machines with more are refused, unless by policy none.")
    ] = 8
    align: Annotated[
        tuple[str, ...],
        Meta(description="Resources that the numeric policy wants on the same nodes."),
    ] = ("cpu", "memory")


class PodSettings(SettingsStruct, frozen=True):
    source: Annotated[
        Literal["kubelet", "directory", "none"],
        Meta(
            description="Who knows the pods: the kubelet's `/pods`, a directory of manifests, or "
            "nobody but the runtime."
        ),
    ] = "kubelet"
    url: Annotated[str, Meta(description="The kubelet's address.")] = "https://127.0.0.1:10250"
    token_file: Annotated[
        str | None, Meta(description="File with the token to show to the kubelet.")
    ] = None
    ca_file: Annotated[
        str | None,
        Meta(description="File with the authority that the kubelet's certificate is of."),
    ] = None
    server_name: Annotated[
        str,
        Meta(
            description="Name that the kubelet's certificate has to have; empty for the address, "
            "or, where that is a loopback address, for the address or the node's name."
        ),
    ] = ""
    client_certificate: Annotated[
        str | None,
        Meta(description="File with a certificate to show to the kubelet, instead of a token."),
    ] = None
    client_key: Annotated[
        str | None, Meta(description="File with its key, unless that is in the same file.")
    ] = None
    manifests: Annotated[
        str,
        Meta(
            description="The kubelet's `staticPodPath`: where static pods are read while it cannot "
            "be asked; empty for nowhere."
        ),
    ] = "/etc/kubernetes/manifests"
    strangers: Annotated[
        Literal["refuse", "start"],
        Meta(
            description="Pods that the kubelet told nothing of before it could not be asked: "
            "refuse them for now, or start them by what the runtime is told of them."
        ),
    ] = "refuse"
    directory: Annotated[str | None, Meta(description="Directory of manifests.")] = None
    skip_owners: Annotated[
        tuple[str, ...],
        Meta(description="Kinds of owners whose pods start without plugins, as DaemonSet."),
    ] = ()
    always: Annotated[
        tuple[str, ...],
        Meta(
            description="Resources that plugins are asked about for containers that ask for none, "
            "too: those must not run on CPUs that others have to themselves."
        ),
    ] = ("cpu",)


class DeviceSettings(SettingsStruct, frozen=True):
    publish: Annotated[
        bool,
        Meta(
            description="Write the devices of this machine, NICs, hugepages and those of device "
            "plugins, to an annotation of its node in Kubernetes, for resource classes."
        ),
    ] = False
    properties_file: Annotated[
        str | None,
        Meta(
            description="File (TOML, YAML) with properties of device plugins' devices, by resource "
            "and ID; read again when it changes."
        ),
    ] = None
    trust_annotations: Annotated[
        bool,
        Meta(
            description="Give pods the devices that are written on them even if the API server "
            "does not say that only the scheduler can write them there (manifests, part `guard`)."
        ),
    ] = False
    events: Annotated[
        bool,
        Meta(
            description="Say in an event of each pod that has devices of classes what it was given "
            "on this node; only with `devices.publish` or a kubeconfig."
        ),
    ] = True
    node: Annotated[str, Meta(description="Name of the node; empty for the host's.")] = ""
    kubeconfig: Annotated[
        str | None,
        Meta(description="How to reach the API server; from the environment if not given."),
    ] = None
    period: Annotated[
        Duration, Meta(description="Time between two looks at the machine for devices.")
    ] = "1m"


class DevicePluginSettings(SettingsStruct, frozen=True):
    enabled: Annotated[
        bool,
        Meta(
            description="Be the device manager of device plugins, whose devices are given out by "
            "resource classes."
        ),
    ] = False
    directory: Annotated[
        str,
        Meta(
            description="Directory of device plugins, with a `kubelet.sock` to register at: "
            "mounted in their pods where they expect the kubelet's."
        ),
    ] = "/var/lib/dovetail-agent/device-plugins"
    shared: Annotated[
        tuple[str, ...],
        Meta(
            description="Resources whose devices pods can get of the kubelet, too, as `vendor.com/"
            "gpu`: the agent registers there in the plugin's place."
        ),
    ] = ()
    kubelet_directory: Annotated[
        str, Meta(description="The kubelet's own directory of device plugins, for shared ones.")
    ] = "/var/lib/kubelet/device-plugins"
    kubelet_pod_resources: Annotated[
        str, Meta(description="Where the kubelet serves its pod resources API, for shared ones.")
    ] = "/var/lib/kubelet/pod-resources/kubelet.sock"


class OutageSettings(SettingsStruct, frozen=True):
    outage: Annotated[
        Outage,
        Meta(
            description="What becomes of a pod while a plugin that it needs is down, unless its "
            "role says otherwise: `reject`, `retry` for a moment, `keep-last`, or `fail-open`."
        ),
    ] = "reject"
    wait: Annotated[Duration, Meta(description="How long `retry` waits for the plugin.")] = "5s"


class RefusalSettings(SettingsStruct, frozen=True):
    fail_pods: Annotated[
        bool,
        Meta(
            description="Fail a refused pod at the API server, as the kubelet's own admission "
            "would, so that its controller makes another: else it stays, and is tried again."
        ),
    ] = False
    after: Annotated[
        Duration, Meta(description="How long a pod has to be refused before it is failed.")
    ] = "10s"
    kubeconfig: Annotated[
        str | None,
        Meta(description="How to reach the API server; as for devices if not given."),
    ] = None


class RoleSettings(SettingsStruct, frozen=True):
    outage: Outage | None = None
    needs: tuple[str, ...] = ()
    """Resources that its containers ask for without saying so, as NIC."""


class AgentSettings(SettingsStruct, frozen=True):
    """The settings of `dovetail agent`."""

    feature_gates: Annotated[
        Mapping[str, bool],
        Meta(description=f"What is switched on. The agent needs `{GATE}=true`."),
    ] = {}
    reconcile_period: Annotated[
        Duration, Meta(description="Time between two looks at plugins and containers.")
    ] = "3s"
    sysfs: Annotated[str, Meta(description="The kernel's description of the machine.")] = "/sys"
    state_dir: Annotated[
        str, Meta(description="Directory of the checkpoint; one agent may use it at a time.")
    ] = "/var/lib/dovetail-agent"
    kubelet_root: Annotated[
        str, Meta(description="The kubelet's directory, to see which managers it runs.")
    ] = "/var/lib/kubelet"
    allow_static_managers: Annotated[
        bool, Meta(description="Start beside a static CPU or memory manager of the kubelet.")
    ] = False
    control_socket: Annotated[
        str, Meta(description="Where `dovetail agent state` and the like ask.")
    ] = "/run/dovetail-agent/control.sock"
    pod_resources_socket: Annotated[
        str, Meta(description="Where the pod resources API is served.")
    ] = "/var/lib/dovetail-agent/pod-resources/kubelet.sock"
    metrics_address: Annotated[
        str, Meta(description="Address and port of Prometheus metrics; empty for none.")
    ] = "127.0.0.1:9178"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least important lines that are logged."),
    ] = "info"
    log_format: Annotated[
        Literal["json", "text"], Meta(description="For programs, or for people.")
    ] = "json"
    plugins: Annotated[PluginSettings, Meta(description="Resource plugins.")] = PluginSettings()
    runtime: Annotated[RuntimeSettings, Meta(description="The container runtime.")] = (
        RuntimeSettings()
    )
    topology: Annotated[TopologySettings, Meta(description="The topology manager.")] = (
        TopologySettings()
    )
    pods: Annotated[PodSettings, Meta(description="Where pods are known.")] = PodSettings()
    devices: Annotated[DeviceSettings, Meta(description="Devices of the machine.")] = (
        DeviceSettings()
    )
    device_plugins: Annotated[DevicePluginSettings, Meta(description="Device plugins.")] = (
        DevicePluginSettings()
    )
    outages: Annotated[OutageSettings, Meta(description="Plugins that are down.")] = (
        OutageSettings()
    )
    refusals: Annotated[RefusalSettings, Meta(description="Pods that are refused.")] = (
        RefusalSettings()
    )
    roles: Annotated[
        Mapping[str, RoleSettings],
        Meta(description="By role of pods: `outage`, and what they need unsaid."),
    ] = {}


def seconds(text: str) -> float:
    """Of a Duration."""
    total, rest = 0.0, text
    while rest:
        digits = rest[: len(rest) - len(rest.lstrip("0123456789."))]
        rest = rest[len(digits) :]
        unit = "ms" if rest.startswith("ms") else rest[:1]
        total, rest = total + float(digits) * UNITS[unit], rest[len(unit) :]
    return total
