"""The daemon of a node: it starts its parts from the inside out, and ends them the other way round.

Checkpoint, registry, manager, then the runtime's back end and the sockets: nobody is let in before
all that answers them is there. On the way out the back end is closed first, so that admissions
under way still find their plugins.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import structlog

from dovetail import __version__
from dovetail.aio.background import Background
from dovetail.node.admission.configuration import AdmissionConfiguration, Outage, Scope
from dovetail.node.agent import allocation_teller, checks, device_publisher
from dovetail.node.agent.allocation_teller import AllocationTeller
from dovetail.node.agent.backends import RuntimeBackend, backend_of
from dovetail.node.agent.cluster_calls import NO_CALLS, ClusterCalls
from dovetail.node.agent.control import ControlSocket
from dovetail.node.agent.device_publisher import DevicePublisher
from dovetail.node.agent.manager import Manager, regularly
from dovetail.node.agent.settings import AgentSettings, PodSettings, TopologySettings, seconds
from dovetail.node.class_devices.guard_trust import Distrusting, GuardTrust
from dovetail.node.class_devices.names import class_resource, requested_name
from dovetail.node.class_devices.source import ClassDevices
from dovetail.node.class_devices.trust import Trust, Trusting
from dovetail.node.common.metrics import AGENT_METRICS
from dovetail.node.common.ports import ManagerPort, PodSource
from dovetail.node.device_plugins.manager import DevicePluginManager
from dovetail.node.hints import TopologyOptions, TopologyPolicy, check
from dovetail.node.refusals.refused_pods import RefusedPods
from dovetail.node.registry.registry import Registry
from dovetail.node.sources import pod_memory
from dovetail.node.sources.away import PodsWhileAway
from dovetail.node.sources.directory import ManifestDirectory
from dovetail.node.sources.implicit_resources import ImplicitResources
from dovetail.node.sources.kubelet import KubeletPods
from dovetail.node.sources.kubelet_client import KubeletClient, names_at
from dovetail.node.sources.pod_memory import PodMemory
from dovetail.node.sources.static_pods import StaticPods
from dovetail.node.state.store import StateStore
from dovetail.node.topology import Machine
from dovetail.node.topology.reader import read
from dovetail.node.wire.listening import CannotServe, GrpcListener

LOG = structlog.get_logger("dovetail.node.agent")

GUARD_FILE = "guard"
"""In the state directory: that the cluster guards the devices that are written on pods."""


async def run(
    settings: AgentSettings,
    stop: asyncio.Event,
    ready: Callable[[], None],
    calls: ClusterCalls = NO_CALLS,
) -> None:
    """Until told to stop. Raises DovetailError if it cannot start."""
    with checks.alone(Path(settings.state_dir)):
        async with AsyncExitStack() as stack:
            await start(settings, stack, calls)
            LOG.info("agent started", version=__version__, backend=settings.runtime.backend)
            ready()
            await stop.wait()
            LOG.info("agent ends")
    LOG.info("agent ended")


async def start(settings: AgentSettings, stack: AsyncExitStack, calls: ClusterCalls) -> None:
    machine = read(Path(settings.sysfs))
    configuration = configuration_of(settings, machine)
    # 1. What was known before.
    store = StateStore.open(Path(settings.state_dir))
    for trouble in store.troubles:
        LOG.error("checkpoint", trouble=trouble)
    # 2. Plugins: those of before are down until they come back.
    registry = await open_registry(settings, store, stack)
    # 3. Who decides.
    source = open_source(settings, trust_of(settings, calls), stack)
    period = seconds(settings.reconcile_period)
    fail_pod = calls.fail_pod
    refusals = RefusedPods(fail_pod, seconds(settings.refusals.after)) if fail_pod else None
    devices = device_plugins_of(settings, stack)
    manager: ManagerPort = Manager(
        configuration, registry, store, source, devices=devices, period=period, refusals=refusals
    )
    stack.push_async_callback(manager.stop)
    # What classes hold is known by now: the kubelet may have the rest.
    if devices:
        await devices.start()
    # 4. The way to containers.
    backend = backend_of(settings.runtime, manager)
    manager.attach(backend)
    await open_part(backend, stack)
    await stack.enter_async_context(manager.reconciling(backend.runtime))
    # 5. Those who only want to know.
    resources = GrpcListener(
        Path(settings.pod_resources_socket), served=tuple(manager.pod_resources())
    )
    await open_part(resources, stack)
    control = ControlSocket(manager, devices.statuses if devices else tuple)
    await open_part(
        GrpcListener(Path(settings.control_socket), handlers=[control.handler()]), stack
    )
    serve_metrics(settings.metrics_address, stack)
    # 6. The cluster, which is told.
    open_telling(settings, calls, stack, store=store, registry=registry, devices=devices)


def open_telling(
    settings: AgentSettings,
    calls: ClusterCalls,
    stack: AsyncExitStack,
    *,
    store: StateStore,
    registry: Registry,
    devices: DevicePluginManager | None,
) -> None:
    telling = Background()
    if calls.publish is not None:
        publisher = DevicePublisher(
            settings,
            calls.publish,
            plugins=devices.all if devices else tuple,
            held_ids=partial(held_ids, store),
            delivers=partial(delivers, registry, settings.plugins.names),
        )
        telling.start(regularly(publisher.look, device_publisher.LOOK_SECONDS))
    if calls.tell_pod is not None:
        teller = AllocationTeller(store, calls.tell_pod)
        telling.start(regularly(teller.look, allocation_teller.LOOK_SECONDS))
    stack.push_async_callback(telling.stop)


def held_ids(store: StateStore, resource: str) -> frozenset[str]:
    """Of a device plugin's devices, those that pods have by classes."""
    name = class_resource(resource)
    pods = store.state.pods.values()
    return frozenset(id_ for pod in pods for id_ in pod.devices.get(name, {}).values())


def delivers(registry: Registry, names: Mapping[str, str], resource: str) -> bool:
    """Whether one of the agent's own plugins brings such devices into containers."""
    asked = requested_name(resource)
    served = names.get(asked, asked)
    return any(served in (each.resource, *each.options.extra_resources) for each in registry.all())


def trust_of(settings: AgentSettings, calls: ClusterCalls) -> Trust:
    if settings.devices.trust_annotations:
        return Trusting()
    if calls.ask_guard is None:
        return Distrusting()
    return GuardTrust(calls.ask_guard, Path(settings.state_dir) / GUARD_FILE)


async def open_registry(
    settings: AgentSettings, store: StateStore, stack: AsyncExitStack
) -> Registry:
    legacy = settings.plugins.legacy_directory
    registry = Registry(
        [Path(each) for each in settings.plugins.directories],
        legacy=None if legacy is None else Path(legacy),
    )
    for resource, options in sorted(store.state.plugins.items()):
        registry.remember(resource, options)
    try:
        await open_part(registry, stack)
    except OSError as error:
        raise CannotServe(f"plugin directory {error.filename}: {error.strerror}") from error
    return registry


def device_plugins_of(settings: AgentSettings, stack: AsyncExitStack) -> DevicePluginManager | None:
    """To be started; it ends after those who use it."""
    own = settings.device_plugins
    if not own.enabled:
        return None
    devices = DevicePluginManager(
        Path(own.directory),
        Path(settings.state_dir),
        shared=own.shared,
        kubelet_directory=Path(own.kubelet_directory),
        kubelet_pod_resources=Path(own.kubelet_pod_resources),
    )
    stack.push_async_callback(devices.stop)
    return devices


def open_source(settings: AgentSettings, trust: Trust, stack: AsyncExitStack) -> PodSource | None:
    source: PodSource | None = source_of(settings.pods, node_of(settings))
    if isinstance(source, KubeletPods):
        stack.push_async_callback(source.close)
        source = while_away(settings, source)
    needs = {name: role.needs for name, role in settings.roles.items()}
    if source is None:
        return None
    names = settings.plugins.names
    implicit = ImplicitResources(source, needs, settings.pods.always, names)
    return ClassDevices(implicit, trust, node_of(settings), names)


async def open_part(part: RuntimeBackend | GrpcListener | Registry, stack: AsyncExitStack) -> None:
    await part.start()
    stack.push_async_callback(part.stop)


def configuration_of(settings: AgentSettings, machine: Machine) -> AdmissionConfiguration:
    """What the manager goes by on this machine; raises BadPolicy."""
    policy, options = TopologyPolicy(settings.topology.policy), options_of(settings.topology)
    check(policy, options, machine.node_ids)
    return AdmissionConfiguration(
        policy=policy,
        options=options,
        scope=Scope(settings.topology.scope),
        nodes=machine.node_ids,
        distances=machine.distances,
        names=settings.plugins.names,
        outages={role: Outage(each.outage) for role, each in settings.roles.items() if each.outage},
        outage=Outage(settings.outages.outage),
        outage_wait=seconds(settings.outages.wait),
        skip_owners=frozenset(settings.pods.skip_owners),
    )


def options_of(settings: TopologySettings) -> TopologyOptions:
    return TopologyOptions(
        prefer_closest_numa_nodes=settings.prefer_closest_numa_nodes,
        max_allowable_numa_nodes=settings.max_allowable_numa_nodes,
        align=settings.align,
    )


def source_of(settings: PodSettings, node: str) -> KubeletPods | ManifestDirectory | None:
    """Raises BadSource."""
    if settings.source == "none":
        return None
    if settings.source == "directory":
        assert settings.directory is not None
        return ManifestDirectory(Path(settings.directory))
    names = (settings.server_name,) if settings.server_name else names_at(settings.url, node)
    return KubeletPods(
        KubeletClient(
            settings.url,
            token_file=path_of(settings.token_file),
            ca_file=path_of(settings.ca_file),
            certificate=path_of(settings.client_certificate),
            key=path_of(settings.client_key),
            server_names=names,
        )
    )


def while_away(settings: AgentSettings, source: KubeletPods) -> PodsWhileAway:
    """The pods also while the kubelet cannot be asked."""
    manifests = settings.pods.manifests
    return PodsWhileAway(
        source,
        PodMemory(Path(settings.state_dir) / pod_memory.NAME),
        StaticPods(Path(manifests), node_of(settings)) if manifests else None,
        strangers_start=settings.pods.strangers == "start",
    )


def node_of(settings: AgentSettings) -> str:
    """Its name, as a kubelet that is told nothing else takes it."""
    return settings.devices.node or socket.gethostname().lower()


def path_of(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def serve_metrics(address: str, stack: AsyncExitStack) -> None:
    found = checks.metrics_address(address)
    if found is None:
        return
    host, port = found
    try:
        port = stack.enter_context(AGENT_METRICS.http_server(host, port))
    except OSError as error:
        raise CannotServe(f"metrics_address {address}: {error.strerror}") from error
    LOG.info("metrics", address=f"{host}:{port}")
