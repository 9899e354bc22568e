"""From settings to the parts that they are about."""

from __future__ import annotations

from pathlib import Path

from dovetail.node.admission.configuration import Configuration, Outage, Scope
from dovetail.node.agent.settings import AgentSettings, PodSettings, TopologySettings, seconds
from dovetail.node.hints import Options, Policy, check
from dovetail.node.sources.directory import Directory
from dovetail.node.sources.kubelet import Kubelet
from dovetail.node.topology import Machine


def configuration_of(config: AgentSettings, machine: Machine) -> Configuration:
    """What the manager goes by on this machine; raises BadPolicy."""
    policy, options = Policy(config.topology.policy), options_of(config.topology)
    check(policy, options, machine.node_ids)
    return Configuration(
        policy=policy,
        options=options,
        scope=Scope(config.topology.scope),
        nodes=machine.node_ids,
        distances=machine.distances,
        names=config.plugins.names,
        outages={role: Outage(each.outage) for role, each in config.roles.items() if each.outage},
        outage=Outage(config.outages.outage),
        outage_wait=seconds(config.outages.wait),
        skip_owners=frozenset(config.pods.skip_owners),
    )


def options_of(settings: TopologySettings) -> Options:
    return Options(
        prefer_closest_numa_nodes=settings.prefer_closest_numa_nodes,
        max_allowable_numa_nodes=settings.max_allowable_numa_nodes,
        align=settings.align,
    )


def source_of(settings: PodSettings) -> Kubelet | Directory | None:
    """Raises BadSource."""
    if settings.source == "none":
        return None
    if settings.source == "directory":
        assert settings.directory is not None
        return Directory(Path(settings.directory))
    return Kubelet(
        settings.url, token_file=path_of(settings.token_file), ca_file=path_of(settings.ca_file)
    )


def path_of(text: str | None) -> Path | None:
    return None if text is None else Path(text)
