"""Controllers as they are registered, and which of them a group calls.

`service/intents` reads the documents and has `service/intents/controllers` call them. A group names
the controllers it wants in the maps of its `intents` documents, as with EMCO: `{controller: the
name of its intent}`. Built-in ones need no name there; EMCO's names for what is built in here
(`hpa-...`, `rsync`) stand for the built-in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from dovetail.core.errors import Malformed
from dovetail.intents.affinity import AFFINITY
from dovetail.intents.generic import GENERIC

HPA = "hpa"
BUILT_IN = (GENERIC, HPA, AFFINITY)
GENERIC_INTENT = "genericPlacementIntent"
"""A key of the maps that names an intent of the built-in controller, not a controller."""
SYNCHRONISER = "rsync"
"""EMCO's controller that applies objects to clusters."""
DEFAULT_DEADLINE_SECONDS = 10.0


class ControllerType(StrEnum):
    PLACEMENT = "placement"
    """Says where apps can go; all are asked at once."""
    ACTION = "action"
    """Edits objects for the clusters that were chosen; one after the other."""


class FailurePolicy(StrEnum):
    """What becomes of a plan when a controller does not answer."""

    REFUSE = "refuse"
    IGNORE = "ignore"
    LAST_ANSWER = "lastAnswer"
    """As if it said what it said last time; refused if it never did."""


class ControllerContract(StrEnum):
    EMCO = "emco"
    DOVETAIL = "dovetail"


class ControllerTls(msgspec.Struct, frozen=True, rename="camel"):
    ca: str = ""
    """Certificates that may have signed the controller's, as PEM."""
    server_name: str = ""


class ControllerSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Of a registration; EMCO's fields first."""

    host: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    type: ControllerType | None = None
    priority: int = 0
    """Lower ones first, of controllers that are called one after the other."""
    contract: ControllerContract = ControllerContract.EMCO
    deadline: Annotated[float, msgspec.Meta(gt=0, le=3600)] | None = None
    """In seconds, for all that its answer takes; None: as the server's settings say."""
    on_failure: FailurePolicy = FailurePolicy.REFUSE
    tls: ControllerTls | None = None


class ControllerCall(msgspec.Struct, frozen=True, kw_only=True):
    """A controller that a group calls."""

    name: str
    intent: str
    """The name of its intent, which the group's map gives."""
    spec: ControllerSpec


class CallTerms(msgspec.Struct, frozen=True):
    """How long a controller has to answer, and what becomes of the plan if it does not."""

    deadline_seconds: float = DEFAULT_DEADLINE_SECONDS
    policy: FailurePolicy = FailurePolicy.REFUSE


class Roster(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a group calls, beside those that are built in."""

    placement: tuple[ControllerCall, ...] = ()
    """In the order of their names: they are called at once."""
    actions: tuple[ControllerCall, ...] = ()
    """In the order in which they are called."""
    hpa: ControllerSpec | None = None
    """A registration that stands for the built-in one: its deadline and policy count."""
    unregistered: tuple[str, ...] = ()
    untyped: tuple[str, ...] = ()
    """Registered without a type: nobody knows what to call them for."""


def controller_spec(name: str, spec: Mapping[str, Any]) -> ControllerSpec:
    """Of a registration's document. Raises Malformed."""
    if name in BUILT_IN:
        raise Malformed(f"{name} is a built-in controller")
    try:
        return msgspec.convert(spec, ControllerSpec)
    except msgspec.ValidationError as error:
        raise Malformed(f"controller {name}: {error}") from None


def roster_of(
    intents: Iterable[Mapping[str, str]], registered: Mapping[str, ControllerSpec]
) -> Roster:
    """Of a group with these `intents` maps."""
    named = {
        name: intent for each in intents for name, intent in each.items() if name != GENERIC_INTENT
    }
    external = {name: named[name] for name in sorted(named) if not is_built_in(name)}
    calls = [
        ControllerCall(name=name, intent=intent, spec=registered[name])
        for name, intent in external.items()
        if name in registered
    ]
    actions = (call for call in calls if call.spec.type is ControllerType.ACTION)
    hpa = (
        registered[name]
        for name in sorted(named)
        if is_hpa(name) and name in registered
        if registered[name].type is not ControllerType.ACTION
    )
    return Roster(
        placement=tuple(call for call in calls if call.spec.type is ControllerType.PLACEMENT),
        actions=tuple(sorted(actions, key=lambda call: (call.spec.priority, call.name))),
        hpa=next(hpa, None),
        unregistered=tuple(name for name in external if name not in registered),
        untyped=tuple(call.name for call in calls if call.spec.type is None),
    )


def terms_of(spec: ControllerSpec | None, default: CallTerms) -> CallTerms:
    if spec is None:
        return default
    return CallTerms(spec.deadline or default.deadline_seconds, spec.on_failure)


def is_built_in(name: str) -> bool:
    return is_hpa(name) or name in (*BUILT_IN, SYNCHRONISER)


def is_hpa(name: str) -> bool:
    return name == HPA or name.startswith(f"{HPA}-")
