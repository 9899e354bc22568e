"""The settings of `dovetail agent` as its options.

Options that the specification or the kubelet call otherwise have that name, too.
"""

from __future__ import annotations

from functools import cache

import click

from dovetail.cli.support.setting_options import option_arguments
from dovetail.config.layers import Layers
from dovetail.node.agent.settings import AgentSettings

AGENT = Layers(AgentSettings, "DOVETAIL_AGENT_")

ALIASES = {
    "reconcile_period": "--qos-resource-manager-reconcile-period",
    "plugins.names": "--qos-resource-manager-resource-names-map",
    "topology.policy": "--topology-manager-policy",
    "topology.scope": "--topology-manager-scope",
}


@cache
def options() -> tuple[click.Option, ...]:
    arguments = option_arguments(AGENT, aliases=ALIASES)
    return tuple(click.Option(names, **attributes) for names, attributes in arguments)
