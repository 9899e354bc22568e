"""Affinity controller: which apps of a group may, or must, share a cluster.

`service/intents/controllers` calls it beside all others; it answers in the app-to-app form.
"""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.core.errors import Malformed
from dovetail.intents.candidates.partitions import AppCompatibility, ControllerAnswer
from dovetail.intents.group import AppAffinityRule, DeploymentGroup

AFFINITY = "affinity"


def affinity_answer(group: DeploymentGroup) -> ControllerAnswer:
    """Raises Malformed for an app that the group doesn't have."""
    apps = tuple(app.name for app in group.apps)
    for rule in group.affinity:
        for named in (rule.app, *(rule.allow or ()), *rule.deny, *rule.require):
            if named not in apps:
                raise Malformed(f"the affinity intent of {rule.app} names {named}, no app of it")
    denied = frozenset(
        (min(rule.app, other), max(rule.app, other))
        for rule in group.affinity
        for other in apart(rule, apps)
    )
    required = frozenset(
        (rule.app, other) for rule in group.affinity for other in rule.require if other != rule.app
    )
    return ControllerAnswer(
        controller=AFFINITY, candidates=AppCompatibility(denied=denied, required=required)
    )


def apart(rule: AppAffinityRule, apps: tuple[str, ...]) -> Iterator[str]:
    """The apps that this one must not meet. What one app allows, another may still deny."""
    for other in apps:
        is_allowed = rule.allow is None or other in rule.allow
        if other != rule.app and (other in rule.deny or not is_allowed):
            yield other
