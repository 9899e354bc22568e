"""Reads Dovetail's own workloads: a fleet file, and requests as one JSON object a line.

{"name": "job-1", "arrives": 0, "ends": 3600, "groups": {
  "": {"resources": {"VCPU": 8}}, "_GPU": {"resources": {"VGPU": 1}, "required": ["A|B"]}}}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from dovetail.core.errors import BadFleet
from dovetail.core.fleet import FleetPlan, FleetReader, Name, Positive
from dovetail.core.request import Affinity, Group, Request
from dovetail.simulate.errors import BadWorkload
from dovetail.simulate.workload import Task, Workload

Suffix = Annotated[str, Meta(pattern=r"^([a-zA-Z0-9_-]{1,64})?\Z")]
Time = Annotated[int, Meta(ge=0)]
Alternatives = Annotated[str, Meta(pattern=r"^[A-Z0-9_]{1,255}(\|[A-Z0-9_]{1,255})*\Z")]
Subtree = Annotated[list[Suffix], Meta(min_length=1)]


class GroupLine(msgspec.Struct, forbid_unknown_fields=True):
    resources: dict[Name, Positive] = {}
    required: list[Alternatives] = []
    """Traits; alternatives are joined with a bar."""
    forbidden: list[Name] = []


class RequestLine(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1)]
    groups: dict[Suffix, GroupLine]
    isolate: list[Suffix] = []
    same_subtree: list[Subtree] = []
    arrives: Time | None = None
    ends: Time | None = None


def read(fleet: Path, requests: Path) -> Workload:
    return Workload(name=requests.stem, fleet=plan(fleet), tasks=tuple(tasks_in(requests)))


def plan(path: Path) -> FleetPlan:
    reader = FleetReader()
    try:
        reader.feed(path.read_bytes())
        return reader.finish()
    except (OSError, BadFleet) as error:
        raise BadWorkload(str(path), str(error)) from error


def tasks_in(path: Path) -> Iterator[Task]:
    decoder = msgspec.json.Decoder(RequestLine)
    try:
        texts = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BadWorkload(str(path), str(error)) from error
    for number, text in enumerate(texts, 1):
        where = f"{path}, line {number}"
        if text.strip():
            try:
                yield task_of(where, decoder.decode(text))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise BadWorkload(where, str(error)) from error


def task_of(where: str, line: RequestLine) -> Task:
    check(where, line)
    request = Request(
        groups=tuple(group_of(suffix, group) for suffix, group in line.groups.items()),
        isolated=frozenset(line.isolate),
        affinities=tuple(Affinity(frozenset(each)) for each in line.same_subtree),
    )
    return Task(
        name=line.name, requests=(request,), typical=request, arrives=line.arrives, ends=line.ends
    )


def check(where: str, line: RequestLine) -> None:
    if not any(group.resources for group in line.groups.values()):
        raise BadWorkload(where, f"{line.name} asks for no resources")
    if line.arrives is not None and line.ends is not None and line.ends < line.arrives:
        raise BadWorkload(where, f"{line.name} ends before it arrives")
    if line.arrives is None and line.ends is not None:
        raise BadWorkload(where, f"{line.name} ends but does not arrive: say when")
    named = {suffix for each in (line.isolate, *line.same_subtree) for suffix in each}
    unknown = sorted(suffix for suffix in named if not suffix or suffix not in line.groups)
    if unknown:
        raise BadWorkload(where, f"isolate and same_subtree name suffixed groups, not {unknown}")
    tied = {suffix for each in line.same_subtree for suffix in each}
    for suffix, group in line.groups.items():
        if not group.resources and suffix not in tied:
            # As the API does: nothing would tell which provider is meant.
            raise BadWorkload(where, f"group {suffix!r} has no resources and no same_subtree")


def group_of(suffix: str, line: GroupLine) -> Group:
    return Group(
        suffix=suffix,
        resources=line.resources,
        required=tuple(frozenset(traits.split("|")) for traits in line.required),
        forbidden=frozenset(line.forbidden),
    )
