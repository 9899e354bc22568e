"""Answers brought into a form in which order does not matter, and what an oracle expects in it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dovetail.rest.query.schema import GROUP_EXTENSIONS
from tests.differential.oracle import NESTED, Candidate, Oracle
from tests.differential.query import Query
from tests.differential.wire import Answer

Request = tuple[frozenset[tuple[str, str, int]], frozenset[tuple[str, frozenset[str]]] | None]
"""One allocation request: what is taken, and the mappings where the version shows them."""
Summary = tuple[Any, ...]

DICTS, TRAITS, ALL_CLASSES, MAPPINGS = 12, 17, 27, 34
"""Versions from which requests are dicts, summaries show traits and all classes, mappings show."""
HEADERS = ("content-type", "cache-control", "openstack-api-version", "allow")
AT_LEAST = ("vary",)
"""Headers that Dovetail also sends where the reference forgets them: on the 404 of an unknown
provider."""
PRESENT = ("last-modified",)
"""Headers that both or neither send, with values that differ by seconds."""


@dataclass(frozen=True, slots=True)
class Found:
    """A 200 answer of GET /allocation_candidates."""

    requests: Counter[Request]
    summaries: dict[str, Summary]


def found(answer: Answer, minor: int) -> Found:
    body = answer.body
    if set(body) != {"allocation_requests", "provider_summaries"}:
        raise ValueError(f"unexpected keys {sorted(body)}")
    requests = Counter(_request(it, minor) for it in body["allocation_requests"])
    summaries = {uuid: _summary(it, minor) for uuid, it in body["provider_summaries"].items()}
    return Found(requests, summaries)


def _request(request: dict[str, Any], minor: int) -> Request:
    keys = {"allocations", "mappings"} if minor >= MAPPINGS else {"allocations"}
    if set(request) != keys:
        raise ValueError(f"unexpected keys {sorted(request)}")
    if minor >= DICTS:
        pairs = list(request["allocations"].items())
    else:
        pairs = [(it["resource_provider"]["uuid"], it) for it in request["allocations"]]
    taken = [(uuid, name, n) for uuid, it in pairs for name, n in it["resources"].items()]
    if minor < MAPPINGS:
        return frozenset(taken), None
    served = request["mappings"].items()
    return frozenset(taken), frozenset((suffix, frozenset(uuids)) for suffix, uuids in served)


def _summary(summary: dict[str, Any], minor: int) -> Summary:
    shown = frozenset((k, v["capacity"], v["used"]) for k, v in summary["resources"].items())
    keys = ["resources"]
    parts: list[Any] = [shown]
    if minor >= TRAITS:
        keys.append("traits")
        parts.append(frozenset(summary["traits"]))
    if minor >= NESTED:
        keys += ["parent_provider_uuid", "root_provider_uuid"]
        parts += [summary["parent_provider_uuid"], summary["root_provider_uuid"]]
    if set(summary) != set(keys):
        raise ValueError(f"unexpected keys {sorted(summary)}")
    return tuple(parts)


class Expectation:
    """What the right candidates look like on the wire at the query's version."""

    def __init__(self, oracle: Oracle, query: Query) -> None:
        self.oracle, self.query = oracle, query

    def request(self, candidate: Candidate) -> Request:
        mapped = candidate.mappings if self.query.minor >= MAPPINGS else None
        return candidate.allocations, mapped

    def found(self, candidates: Iterable[Candidate]) -> Found:
        requests = Counter(self.request(candidate) for candidate in candidates)
        return Found(requests, self.summaries(requests))

    def summaries(self, requests: Iterable[Request]) -> dict[str, Summary]:
        """Whole trees of the providers that give something; before 1.29 those providers only."""
        givers = {uuid for taken, _ in requests for uuid, _, _ in taken}
        world = self.oracle.world
        if self.query.minor >= NESTED:
            roots = {world.roots[uuid] for uuid in givers}
            givers = {uuid for uuid, root in world.roots.items() if root in roots}
        return {uuid: self._summary(uuid) for uuid in givers}

    def _summary(self, uuid: str) -> Summary:
        it = self.oracle.world.by_uuid[uuid]
        minor = self.query.minor
        asked = {name for group in self.query.groups for name in group.resources}
        shown = frozenset(
            (name, stock.capacity, self.oracle.used.get((uuid, name), 0))
            for name, stock in it.inventories.items()
            if minor >= ALL_CLASSES or name in asked
        )
        traits = (it.traits,) if minor >= TRAITS else ()
        family = (it.parent, self.oracle.world.roots[uuid]) if minor >= NESTED else ()
        return (shown, *traits, *family)

    def limited_fault(self, limited: Found, right: Found) -> str | None:
        """Why an answer cut to the query's limit is wrong; any part of the right one will do."""
        limit = self.query.limit or right.requests.total()
        if limited.requests.total() != min(limit, right.requests.total()):
            return f"{limited.requests.total()} candidates, limit {limit}"
        if not limited.requests <= right.requests:
            return "candidates beyond the right ones"
        least = self.summaries(limited.requests).items()
        most = right.summaries.items()
        if self.query.minor >= NESTED:
            most = least
        if not least <= limited.summaries.items() <= most:
            return "summaries are not those of the candidates shown"
        return None


def alike(theirs: Answer, ours: Answer) -> bool:
    """Whether two answers say the same, whatever the order they say it in."""
    return (
        theirs.status == ours.status
        and headers_alike(theirs, ours)
        and _plain_body(theirs) == _plain_body(ours)
    )


def headers_alike(theirs: Answer, ours: Answer) -> bool:
    same = all(theirs.headers.get(name) == ours.headers.get(name) for name in HEADERS)
    present = all((name in theirs.headers) == (name in ours.headers) for name in PRESENT)
    at_least = all(name in ours.headers for name in AT_LEAST if name in theirs.headers)
    return same and present and at_least


def _plain_body(answer: Answer) -> Any:
    if answer.status >= 400 and isinstance(answer.body, dict):
        return [_error(error) for error in answer.body["errors"]]
    return unordered(answer.body)


OWN_KEYS = re.compile(rf"'\^(?:{'|'.join(GROUP_EXTENSIONS)})\([^']*', ")
"""A refusal lists the keys that there are: Dovetail has more of them."""


def _error(error: dict[str, Any]) -> dict[str, Any]:
    """Status, title, code and the words of the detail up to a quoted schema, in any order."""
    kept = {name: value for name, value in error.items() if name not in ("request_id", "detail")}
    told = OWN_KEYS.sub("", error["detail"].split("Failed validating")[0])
    return {**kept, "detail": sorted(re.findall(r"[^\s,'\"\[\]()]+", told))}


def unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unordered(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return sorted((unordered(inner) for inner in value), key=json.dumps)
    return value
