"""Pods where nobody but the runtime knows them: each container as its creation tells it."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from math import ceil

import msgspec

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import ContainerSpec, Pod, Sandbox
from dovetail.node.wire.resource_plugin import ContainerType
from dovetail.podfit.pod_sum import BEST_EFFORT, BURSTABLE, GUARANTEED

MAIN = "kubernetes.io/main-container-name"

FEWEST_SHARES = 2
"""What the kubelet gives to a container that requests no CPU."""

GUARANTEED_SCORE, BEST_EFFORT_SCORE = -997, 1000
"""The kubelet's oom_score_adj of these classes."""


def pod_of(sandbox: Sandbox) -> Pod:
    """With the one container that is about to be created, if any is."""
    return Pod(
        uid=sandbox.uid,
        namespace=sandbox.namespace,
        name=sandbox.name,
        labels=sandbox.labels,
        annotations=sandbox.annotations,
        runtime_class=sandbox.runtime_class,
        qos_class=sandbox.qos_class or BEST_EFFORT,
        containers=() if sandbox.creating is None else (sandbox.creating,),
    )


def creating(
    sandbox: Sandbox, name: str, asked: ContainerSettings, known: Collection[str]
) -> Sandbox:
    """With one more than the containers that are `known` by name.

    The first container that comes is the main one, unless an annotation says otherwise.
    """
    others = [each for each in known if each != name]
    main = sandbox.annotations.get(MAIN) or (name if not others else "")
    requests, limits = amounts(asked)
    container = ContainerSpec(
        name=name,
        type=ContainerType.MAIN if name == main else ContainerType.SIDECAR,
        index=len(others),
        requests=requests,
        limits=limits,
    )
    qos_class = qos_class_of(asked.numbers.get("OomScoreAdj"))
    return msgspec.structs.replace(sandbox, creating=container, qos_class=qos_class)


def amounts(asked: ContainerSettings) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
    """Requests and limits. The kubelet tells no request of memory: it counts as the limit."""
    requests, limits = {}, {}
    shares = asked.numbers.get("CpuShares", 0)
    if shares > FEWEST_SHARES:
        # The kubelet gives 1024 shares for a CPU, rounded down from thousandths of a CPU.
        requests["cpu"] = Fraction(ceil(Fraction(shares * 1000, 1024)), 1000)
    quota, period = (asked.numbers.get(each, 0) for each in ("CpuQuota", "CpuPeriod"))
    if quota > 0 and period > 0:
        limits["cpu"] = Fraction(quota, period)
    if (memory := asked.numbers.get("MemoryLimitInBytes", 0)) > 0:
        requests["memory"] = limits["memory"] = Fraction(memory)
    return requests, limits


def qos_class_of(oom_score_adj: int | None) -> str:
    """The QoS class that the kubelet tells a runtime no other way."""
    if oom_score_adj == BEST_EFFORT_SCORE:
        return BEST_EFFORT
    return GUARANTEED if oom_score_adj == GUARANTEED_SCORE else BURSTABLE
