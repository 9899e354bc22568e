"""What is installed in a cluster: definitions, rights and policies, as Kubernetes reads them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

PARTS = {
    "crds": "ResourceClass, the kind itself",
    "scheduler": "the scheduler's account and rights, and two replicas of it",
    "guard": "only a binding writes which devices a pod has",
    "use": "who may ask for a class: the verb `use`, checked when a pod is created",
    "machines-crds": "Machine, MachineNodePool and MachineShape, the kinds themselves",
    "machines": "the operator's account and rights, two replicas of it, and a role for buyers",
    "machines-injection": "guests get what their unit has when they are created",
    "machines-admission": "what no unit can hold is refused, and nobody but the operator sells",
    "machines-rules": "what Machines have to keep to beside each other, and while units are sold",
}
"""Name of the file, and what is in it."""
OPTIONAL_PARTS = {
    "machines-webhook": "guests are refused at once; only for operators that serve it",
}
"""Those that have to be asked for by name: without somebody who serves them they are in the way."""


def text(parts: Sequence[str] = tuple(PARTS)) -> str:
    files = (resources.files(__package__).joinpath(f"{part}.yaml") for part in parts)
    return "---\n".join(file.read_text() for file in files)
