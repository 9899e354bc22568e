"""The explanation of a guest: whether it has a unit or could have one; why not, and what helps.

`dovetail machines explain` asks, of one pod in a snapshot of its Machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.core.explanation import Counted, Explanation, Reason, Stage, Verdict
from dovetail.core.explanation_text import GUEST_TEXTS, count_of
from dovetail.machines.documents import Machine
from dovetail.machines.explaining.cases import GuestCase, idle
from dovetail.machines.explaining.judging import Judgement, judge
from dovetail.machines.explaining.nearest import lease_words
from dovetail.machines.explaining.relaxing import relaxations
from dovetail.machines.names import INJECT_RESOURCE, MACHINE_GROUP
from dovetail.machines.pods import (
    group_of,
    is_gated_guest,
    is_leaving,
    is_over,
    type_of,
)
from dovetail.machines.selling.standing import MachineStanding
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.machines.status import time_text
from dovetail.podfit.objects import Pod


def explain_guest(snapshot: MachineSnapshot, pod: Pod) -> Explanation:
    """Of a pod with the labels of a guest of this Machine."""
    if is_over(pod):
        return _plain(snapshot, Verdict.NEVER, f"{pod.key} has ended: it holds no unit.")
    standing = MachineStanding(snapshot)
    if pod.metadata.uid in standing.survey.places:
        return _plain(snapshot, Verdict.FITS, holding_words(standing, pod), fitting=1)
    if is_leaving(pod):
        return _plain(snapshot, Verdict.NEVER, f"{pod.key} is being deleted: it gets no unit.")
    case = GuestCase(snapshot=snapshot, pod=pod)
    if not is_gated_guest(pod) and type_of(pod) in standing.shapes:
        return _not_injected(case)
    found = judge(case)
    verdict = verdict_of(case, found)
    return Explanation(
        verdict=verdict,
        summary=summary_of(case, found, verdict),
        of=Counted.NODES,
        total=len(found.pool),
        fitting=len(found.fitting),
        funnel=found.stages,
        nearest=found.nearest,
        relaxations=() if found.fitting else relaxations(case, found),
    )


def explain_without_machine(pod: Pod, machines: Sequence[Machine]) -> Explanation:
    """Of a guest whose group no accepted Machine sells; `machines` are those of the group."""
    group = group_of(pod)
    refused = ", ".join(each.metadata.name for each in machines)
    why = (
        f"Machine {refused} of group {group!r} is not accepted"
        if machines
        else f"there is no Machine of group {group!r}"
    )
    stage = Stage(
        reason=Reason.MACHINE,
        group=None,
        constraint=f"{MACHINE_GROUP}={group}",
        left=0,
        words=GUEST_TEXTS[Reason.MACHINE],
    )
    return Explanation(
        verdict=Verdict.NOT_NOW if machines else Verdict.NEVER,
        summary=f"{pod.key} waits: {why}.",
        of=Counted.NODES,
        total=0,
        fitting=0,
        funnel=(stage,),
        nearest=(),
        relaxations=(),
    )


def verdict_of(case: GuestCase, found: Judgement) -> Verdict:
    if found.fitting:
        return Verdict.FITS
    return Verdict.NOT_NOW if judge(idle(case)).fitting else Verdict.NEVER


def summary_of(case: GuestCase, found: Judgement, verdict: Verdict) -> str:
    who, name = case.pod.key, type_of(case.pod)
    if found.fitting:
        return f"{who} can have a unit of {name} now, on {found.fitting[0]}."
    how = "waits" if verdict is Verdict.NOT_NOW else "cannot be served, even with nothing in use"
    ahead = count_of(len(found.ahead), "guest")
    line = f" {ahead} of its type {'waits' if len(found.ahead) == 1 else 'wait'} before it."
    return f"{who} {how}: {found.why}.{line if found.ahead else ''}"


def holding_words(standing: MachineStanding, pod: Pod) -> str:
    uid = pod.metadata.uid
    unit = standing.snapshot.units.get(uid)
    node = standing.survey.places[uid]
    since = "" if unit is None else f" since {time_text(unit.since)}"
    until = lease_words(standing, pod)
    return f"{pod.key} has its unit of {type_of(pod)}, on {node}{since}{until}."


def _plain(
    snapshot: MachineSnapshot, verdict: Verdict, summary: str, fitting: int = 0
) -> Explanation:
    """Nothing is left to be decided."""
    return Explanation(
        verdict=verdict,
        summary=summary,
        of=Counted.NODES,
        total=len(snapshot.spec.node_pool),
        fitting=fitting,
        funnel=(),
        nearest=(),
        relaxations=(),
    )


def _not_injected(case: GuestCase) -> Explanation:
    """Labelled as a guest, and no more: admission did not touch it."""
    pod = case.pod
    found = Judgement(
        pool=tuple(each.name for each in case.spec.node_pool),
        stages=(
            Stage(
                reason=Reason.UNIT_SHAPE,
                group=None,
                constraint=INJECT_RESOURCE,
                left=0,
                words=GUEST_TEXTS[Reason.UNIT_SHAPE],
            ),
        ),
        fitting=(),
        faults={
            Reason.UNIT_SHAPE: "nothing was injected when it was created: its namespace needs the"
            f" label {INJECT_RESOURCE}=enabled by then"
        },
        nearest=(),
        ahead=(),
    )
    return Explanation(
        verdict=Verdict.NEVER,
        summary=f"{pod.key} gets no unit: {found.why}.",
        of=Counted.NODES,
        total=len(found.pool),
        fitting=0,
        funnel=found.stages,
        nearest=(),
        relaxations=relaxations(case, found),
    )
