"""The requests that are measured: every route of every door, the largest of each that is allowed.

Bodies are as large as `max.body_bytes` lets them be, in every shape that a route takes or refuses.
"""

import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from urllib.parse import quote

import orjson

from dovetail.core.fleet import LONGEST_LINE
from dovetail.rest.doors import DOORS
from dovetail.rest.server.site import mounted

from .. import fleet
from ..client import HEADERS

LARGEST = 8 * 2**20 - 1
CONSUMER = "6ab2f7f0-3d0c-4c56-9d1b-3c1f7e8b2a44"
LARGE_TREE = "one"
"""A host of tens of thousands of providers."""
OLD_HOSTS = 1_000
"""Real providers that bodies name."""


@dataclass(frozen=True, slots=True)
class Probe:
    route: str
    method: str
    path: str
    what: str = ""
    body: Callable[[], bytes] | None = None
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def probes() -> list[Probe]:
    found = [*placement(), *console(), *dovetail(), *bombs(), *writes_that_are_large()]
    measured = {(probe.method, probe.route) for probe in found}
    return [
        *found,
        *(probe for probe in all_routes() if (probe.method, probe.route) not in measured),
    ]


# -- bodies --------------------------------------------------------------------------------------


def up_to_the_limit(items: Iterator[bytes], lead: bytes, end: bytes, limit: int = LARGEST) -> bytes:
    parts, size = [], len(lead) + len(end)
    for item in items:
        size += len(item) + 1
        if size > limit:
            break
        parts.append(item)
    return lead + b",".join(parts) + end


def uuids() -> Iterator[str]:
    rng = random.Random(7)
    while True:
        yield str(uuid.UUID(int=rng.getrandbits(128), version=4))


def known_uuids() -> list[str]:
    return [each.uuid for host in fleet.generate(OLD_HOSTS) for each in host.providers]


OWNER = b'"project_id":"p","user_id":"u","consumer_generation":null,"consumer_type":"INSTANCE"'


def one_claim(last: bytes = b'{"resources":{"VCPU":1}}') -> bytes:
    items = (b'"%s":{"resources":{"VCPU":1}}' % each.encode() for each in uuids())
    end = b',"%s":%s},%s}' % (CONSUMER.encode(), last, OWNER)
    return up_to_the_limit(items, b'{"allocations":{', end)


def claim_on(provider: str) -> bytes:
    return b'{"allocations":{"%s":{"resources":{"VCPU":1}}},%s}' % (provider.encode(), OWNER)


def many_claims() -> bytes:
    providers = known_uuids()
    items = (
        b'"%s":%s' % (each.encode(), claim_on(providers[at % len(providers)]))
        for at, each in enumerate(uuids())
    )
    return up_to_the_limit(items, b"{", b"}")


STOCK = b'{"total":10,"reserved":0,"min_unit":1,"max_unit":10,"step_size":1,"allocation_ratio":1.0}'


def reshape() -> bytes:
    providers = known_uuids()
    items = (
        b'"%s":{"resource_provider_generation":0,"inventories":{"VCPU":%s}}'
        % (each.encode(), STOCK)
        for each in uuids()
    )
    claims = ",".join(
        f'"{each}":{claim_on(provider).decode()}'
        for each, provider in zip(islice(uuids(), 10_000), providers, strict=False)
    )
    end = b'},"allocations":{%s}}' % claims.encode()
    return up_to_the_limit(items, b'{"inventories":{', end)


def inventories() -> bytes:
    items = (b'"CUSTOM_%d":%s' % (at, STOCK) for at in range(10**6))
    return up_to_the_limit(items, b'{"resource_provider_generation":0,"inventories":{', b"}}")


def traits() -> bytes:
    items = (b'"CUSTOM_%d"' % at for at in range(10**6))
    return up_to_the_limit(items, b'{"resource_provider_generation":0,"traits":[', b"]}")


def aggregates(last: bytes = b"") -> bytes:
    items = (b'"%s"' % each.encode() for each in uuids())
    return up_to_the_limit(items, b'{"resource_provider_generation":0,"aggregates":[', last + b"]}")


def attributes() -> bytes:
    items = (b'"a%d":"%d"' % (at, at) for at in range(10**6))
    return up_to_the_limit(items, b'{"resource_provider_generation":0,"attributes":{', b"}}")


def names() -> bytes:
    known = [each.name for host in fleet.generate(7_600) for each in host.providers]
    return orjson.dumps({"providers": known})


def question(**more: object) -> bytes:
    return orjson.dumps({"query": "resources=VCPU:1&limit=10", **more})


def drained() -> bytes:
    return question(drain=[host.providers[0].name for host in fleet.generate(5_000)])


def released() -> bytes:
    consumers = (each.uuid for host in fleet.generate(10_000) for each in host.consumers)
    return question(release=list(consumers))


def new_trees(prefix: str) -> Iterator[bytes]:
    for at in range(10**6):
        yield (
            b'{"name":"%s-%d","inventories":{"DISK_GB":100},"children":['
            b'{"name":"%s-%d-numa","traits":["HW_NUMA_ROOT"],"inventories":{"VCPU":8,"MEMORY_MB":4096}}]}'
            % (prefix.encode(), at, prefix.encode(), at)
        )


def added() -> bytes:
    lead = b'{"query":"resources=VCPU:1&limit=10","add":['
    return up_to_the_limit(new_trees("added"), lead, b"]}")


def fleet_lines() -> bytes:
    return up_to_the_limit(new_trees("lines"), b"", b"").replace(b"]},{", b"]}\n{")


def fleet_of_one_tree() -> bytes:
    lead = b'{"name":"%s","children":[' % LARGE_TREE.encode()
    return up_to_the_limit(new_trees("deep"), lead, b"]}", LONGEST_LINE)


def of_class() -> bytes:
    items = (b'{"property":"p%d","operator":"In","values":["a"]}' % at for at in range(10**6))
    lead = b'{"spec":{"resourceSelector":[{"matchExpressions":['
    return up_to_the_limit(items, lead, b"]}]}}")


def many_groups(count: int) -> str:
    return "&".join(f"resources{at}=VCPU:1" for at in range(1, count + 1))


# -- routes --------------------------------------------------------------------------------------


def placement() -> Iterator[Probe]:
    host = next(iter(fleet.generate(1)))
    provider = f"/resource_providers/{host.providers[1].uuid}"
    for version in ("1.39", "1.0", "1.27"):
        headers = {"openstack-api-version": f"placement {version}"}
        yield Probe("/resource_providers", "GET", "/resource_providers", version, headers=headers)
    for path, what in (
        ("/resource_providers?required=HW_NUMA_ROOT", "required"),
        (f"/resource_providers?{many_members()}", "many member_of"),
    ):
        yield Probe("/resource_providers", "GET", path, what)
    for version in ("1.39", "1.28", "1.12", "1.10"):
        headers = {"openstack-api-version": f"placement {version}"}
        path = "/allocation_candidates?resources=VCPU:1"
        yield Probe("/allocation_candidates", "GET", path, f"no limit, {version}", headers=headers)
    for path, what in (
        ("resources=VCPU:1&rank=spread", "ranked, no limit"),
        ("resources=VCPU:1&rank=spread&scores=1", "scores, no limit"),
        ("resources=VCPU:1&limit=10", "limit 10"),
        ("resources_A=VCPU:1&resources_B=FPGA:1&same_subtree=_A,_B", "VCPU and FPGA, no limit"),
        (f"{many_groups(100)}&group_policy=none&limit=10", "100 groups"),
        (f"{many_groups(1400)}&group_policy=none&limit=10", "1,400 groups"),
        (f"resources=VCPU:1&required=in:{','.join(['HW_NUMA_ROOT'] * 2400)}", "a long in:"),
        (f"resources=VCPU:1&{many_members()}", "many member_of"),
    ):
        yield Probe("/allocation_candidates", "GET", f"/allocation_candidates?{path}", what)
    yield Probe("/traits", "GET", "/traits")
    yield Probe("/resource_classes", "GET", "/resource_classes")
    yield Probe("/usages", "GET", f"/usages?project_id={fleet.PROJECT}")
    for part in ("inventories", "usages", "aggregates", "allocations", "traits"):
        yield Probe(f"/resource_providers/{{uuid}}/{part}", "GET", f"{provider}/{part}")


def many_members() -> str:
    return "&".join(f"member_of={each}" for each in islice(uuids(), 600))


def writes_that_are_large() -> Iterator[Probe]:
    host = next(iter(fleet.generate(1)))
    provider = f"/resource_providers/{host.providers[1].uuid}"
    consumer = "/allocations/{consumer_uuid}"
    of_provider = "/resource_providers/{uuid}"
    yield Probe(consumer, "PUT", f"/allocations/{CONSUMER}", "8 MB", one_claim)
    bad = b'{"resources":{"VCPU":0}}'
    yield Probe(consumer, "PUT", f"/allocations/{CONSUMER}", "8 MB, bad", lambda: one_claim(bad))
    yield Probe("/allocations", "POST", "/allocations", "8 MB", many_claims)
    yield Probe("/reshaper", "POST", "/reshaper", "8 MB", reshape)
    yield Probe(f"{of_provider}/inventories", "PUT", f"{provider}/inventories", "8 MB", inventories)
    yield Probe(f"{of_provider}/traits", "PUT", f"{provider}/traits", "8 MB", traits)
    yield Probe(f"{of_provider}/aggregates", "PUT", f"{provider}/aggregates", "8 MB", aggregates)
    twice = b',"%s"' % next(uuids()).encode()
    yield Probe(
        *(f"{of_provider}/aggregates", "PUT", f"{provider}/aggregates", "8 MB, one twice"),
        lambda: aggregates(twice),
    )


def dovetail() -> Iterator[Probe]:
    host = next(iter(fleet.generate(1)))
    for path, what in (
        ("/dovetail/v1/explain?resources=VCPU:1", "fits"),
        ("/dovetail/v1/explain?resources=VCPU:1000", "never fits"),
        (
            "/dovetail/v1/explain?resources_A=FPGA:1&resources_B=VCPU:31&same_subtree=_A,_B",
            "two groups",
        ),
        (f"/dovetail/v1/explain?{many_groups(100)}", "100 groups"),
        (f"/dovetail/v1/explain?{many_groups(1400)}", "1,400 groups"),
    ):
        yield Probe("/dovetail/v1/explain", "GET", path, what)
    whatif = "/dovetail/v1/whatif"
    everything = orjson.dumps({"query": "resources=VCPU:1"})
    yield Probe(whatif, "POST", whatif, "no limit", lambda: everything)
    yield Probe(whatif, "POST", whatif, "5,000 drained", drained)
    yield Probe(whatif, "POST", whatif, "16,000 released", released)
    yield Probe(whatif, "POST", whatif, "8 MB added", added)
    groups = orjson.dumps({"query": f"{many_groups(1400)}"})
    yield Probe(whatif, "POST", whatif, "1,400 groups", lambda: groups)
    claims = "/dovetail/v1/claims"
    yield Probe(claims, "POST", claims, "1,400 groups", lambda: groups)
    long = orjson.dumps({"query": many_groups(400_000)})
    yield Probe(claims, "POST", claims, "a query of 8 MB", lambda: long)
    yield Probe(claims, "POST", claims, "one", question)
    nothing = orjson.dumps({"query": "resources=VCPU:1000"})
    yield Probe(claims, "POST", claims, "nothing fits", lambda: nothing)
    yield Probe("/dovetail/v1/decisions", "GET", "/dovetail/v1/decisions?limit=1000")
    yield Probe("/dovetail/v1/names", "POST", "/dovetail/v1/names", "98,800 names", names)
    for path in ("usage", "classes", "devices", "audit", "fleet", "openapi.json"):
        yield Probe(f"/dovetail/v1/{path}", "GET", f"/dovetail/v1/{path}")
    yield Probe("/dovetail/v1/audit", "POST", "/dovetail/v1/audit")
    at = f"/dovetail/v1/providers/{host.providers[0].uuid}/attributes"
    route = "/dovetail/v1/providers/{uuid}/attributes"
    yield Probe(route, "PUT", at, "8 MB", attributes)
    yield Probe(
        "/dovetail/v1/classes/{class_name}", "PUT", "/dovetail/v1/classes/c", "8 MB", of_class
    )
    ndjson = "application/x-ndjson"
    load = "/dovetail/v1/fleet"
    yield Probe(load, "POST", load, "8 MB of lines", fleet_lines, ndjson)
    yield Probe(load, "POST", load, "one tree of 4 MB", fleet_of_one_tree, ndjson)
    for route in ("/dovetail/v1/hosts", "/console/hosts"):
        yield Probe(f"{route}/{{host}}", "GET", f"{route}/{LARGE_TREE}", "one tree of 4 MB")


def console() -> Iterator[Probe]:
    """Pages, before the fleet grows hosts that are like no others."""
    host = next(iter(fleet.generate(1)))
    never = quote("resources=VCPU:1000", safe="")
    many = quote(many_groups(100), safe="")
    for route, query, what in (
        ("", "", "first"),
        ("", "", "again"),
        ("", "?q=host&state=free&group=aggregate", "searched"),
        ("/why", f"?query={never}", "never fits"),
        ("/why", f"?query={many}", "100 groups"),
        ("/holders", "", ""),
        ("/decisions", "", ""),
        ("/audit", "", ""),
    ):
        yield Probe(f"/console{route}", "GET", f"/console{route}{query}", what)
    one = "/console/hosts/{host}"
    yield Probe(one, "GET", f"/console/hosts/{host.providers[0].uuid}", "usual")


def bombs() -> Iterator[Probe]:
    """What breaks parsers: nested, large and repeated."""
    for name, body in BOMBS.items():
        for method, route, path in (
            ("PUT", "/allocations/{consumer_uuid}", f"/allocations/{CONSUMER}"),
            ("POST", "/allocations", "/allocations"),
            ("POST", "/reshaper", "/reshaper"),
            ("POST", "/dovetail/v1/whatif", "/dovetail/v1/whatif"),
            ("POST", "/dovetail/v1/claims", "/dovetail/v1/claims"),
            ("POST", "/dovetail/v1/names", "/dovetail/v1/names"),
            ("POST", "/v2/projects", "/v2/projects"),
            ("POST", "/v2/controllers", "/v2/controllers"),
        ):
            yield Probe(route, method, path, name, body)


BOMBS: dict[str, Callable[[], bytes]] = {
    "nested 2,000 deep": lambda: b'{"a":' * 2000 + b"1" + b"}" * 2000,
    "lists, 4 million deep": lambda: b"[" * (LARGEST // 2) + b"]" * (LARGEST // 2),
    "a number of 8 MB": lambda: b'{"query":%s}' % (b"9" * (LARGEST - 20)),
    "a string of 8 MB": lambda: b'{"query":"%s"}' % (b"x" * (LARGEST - 20)),
    "a million empty lists": lambda: b'{"a":[%s[]]}' % (b"[]," * ((LARGEST - 20) // 3)),
    "one key again and again": lambda: b'{%s"a":1}' % (b'"a":1,' * ((LARGEST - 20) // 6)),
    "many keys": lambda: up_to_the_limit((b'"k%d":1' % at for at in range(10**7)), b"{", b"}"),
}


def all_routes() -> Iterator[Probe]:
    """Each once, plainly: names in paths that nobody knows, and a body that is empty."""
    for door in mounted(DOORS):
        for route, methods in door.mounted().items():
            path = "/".join(quote("nobody") if "{" in part else part for part in route.split("/"))
            for method in methods:
                body = (lambda: b"{}") if method in ("POST", "PUT") else None
                yield Probe(route, method, path, "plainly", body)


def headers_of(probe: Probe) -> dict[str, str]:
    sent = HEADERS | probe.headers
    return sent if probe.body is None else sent | {"content-type": probe.content_type}
