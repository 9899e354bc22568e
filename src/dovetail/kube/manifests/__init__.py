"""What is installed in a cluster: definitions, rights and policies, as Kubernetes reads them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from dovetail.kube.manifests.installation import (
    Installation,
    kube_scheduler_configuration,
    rendered,
)

PARTS = {
    "crds": "ResourceClass, the kind itself",
    "scheduler": "the scheduler's account and rights, two replicas of it, and their budget",
    "guard": "only who may `allocate` classes writes which devices a pod has",
    "use": "who may ask for a class: the verb `use`, checked when a pod is created",
    "machines-crds": "Machine, MachineNodePool and MachineShape, the kinds themselves",
    "machines": "the operator's account and rights, two replicas of it, and a role for buyers",
    "machines-injection": "guests get what their unit has when they are created",
    "machines-admission": "what no unit can hold is refused, and nobody but the operator sells",
    "machines-rules": "what Machines have to keep to beside each other, and while units are sold",
}
"""Name of the file, and what is in it."""
SCHEDULER, EXTENDER_PART, KUBE_SCHEDULER = "scheduler", "extender", "kube-scheduler"
OPTIONAL_PARTS = {
    "agent": "the node agents' account: pods, refused ones' status, devices of nodes, the guard",
    "machines-webhook": "guests are refused at once; only for operators that serve it",
    EXTENDER_PART: "the scheduler as above, but kube-scheduler can ask it about devices",
    KUBE_SCHEDULER: "what kube-scheduler has to be told for that: a file for its --config",
}
"""Those that have to be asked for by name: without somebody who serves them they are in the way."""


def text(parts: Sequence[str] = tuple(PARTS), chosen: Installation | None = None) -> str:
    """Their files one after the other; an extender without its scheduler would be nothing."""
    chosen = chosen or Installation()
    serves = EXTENDER_PART in parts
    if serves and SCHEDULER not in parts:
        at = list(parts).index(EXTENDER_PART)
        parts = (*parts[:at], SCHEDULER, *parts[at:])
    return "---\n".join(
        kube_scheduler_configuration(written(part), chosen)
        if part == KUBE_SCHEDULER
        else rendered(written(part), chosen, serves_extender=serves and part == SCHEDULER)
        for part in parts
    )


def written(part: str) -> str:
    return resources.files(__package__).joinpath(f"{part}.yaml").read_text()
