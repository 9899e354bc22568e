"""From settings to the parts that they are about."""

from __future__ import annotations

from pathlib import Path

from dovetail.node.admission.configuration import AdmissionConfiguration, Outage, Scope
from dovetail.node.agent.settings import AgentSettings, PodSettings, TopologySettings, seconds
from dovetail.node.hints import TopologyOptions, TopologyPolicy, check
from dovetail.node.sources.directory import ManifestDirectory
from dovetail.node.sources.kubelet import KubeletPods
from dovetail.node.topology import Machine


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


def source_of(settings: PodSettings) -> KubeletPods | ManifestDirectory | None:
    """Raises BadSource."""
    if settings.source == "none":
        return None
    if settings.source == "directory":
        assert settings.directory is not None
        return ManifestDirectory(Path(settings.directory))
    return KubeletPods(
        settings.url, token_file=path_of(settings.token_file), ca_file=path_of(settings.ca_file)
    )


def path_of(text: str | None) -> Path | None:
    return None if text is None else Path(text)
