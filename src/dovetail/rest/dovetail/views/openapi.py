"""OpenAPI part of the views of the fleet."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.rest.openapi.operations import (
    AMOUNTS,
    NUMBER,
    TEXT,
    UUID,
    YES_OR_NO,
    Document,
    Operation,
    a_list,
    a_map,
    an_object,
    maybe,
    ref,
)
from dovetail.rest.query.schema import LIST_CANDIDATES
from dovetail.rest.query.versions import NEWEST

NUMBERS = a_list(NUMBER)
TEXTS = a_list(TEXT)
BY_CLASS = a_map(NUMBERS)
GROUPINGS = ("rack", "aggregate", "cluster", "pool")


def by_grouping(schema: Document) -> Document:
    return an_object(dict.fromkeys(GROUPINGS, schema))


MAP_DOCUMENT = an_object(
    {
        "version": TEXT,
        "layout": TEXT,
        "hosts": an_object(
            {"uuid": TEXTS, "name": TEXTS, "state": NUMBERS, "group": by_grouping(NUMBERS)}
        ),
        "groups": by_grouping(TEXTS),
        "classes": TEXTS,
        "capacity": BY_CLASS,
        "used": BY_CLASS,
        "lanes": an_object(
            {
                "host": NUMBERS,
                "kind": NUMBERS,
                "name": TEXTS,
                "class": NUMBERS,
                "capacity": NUMBERS,
                "used": NUMBERS,
            }
        ),
        "kinds": TEXTS,
        "fragmentation": NUMBERS,
        "totals": an_object(
            {"hosts": NUMBER, "classes": a_map(an_object({"capacity": NUMBER, "used": NUMBER}))}
        ),
    }
)
STATE = {"version": TEXT, "layout": TEXT}
MAP_CHANGE = an_object(
    {
        "version": TEXT,
        "from": {
            **TEXTS,
            "description": "Versions of the map that this leads on from. Whoever has another one "
            "asks for the map.",
        },
        "hosts": NUMBERS,
        "used": BY_CLASS,
        "fragmentation": NUMBERS,
        "lanes": an_object({"at": NUMBERS, "used": NUMBERS}),
    }
)
MAP_EVENT = an_object(
    {
        "event": {"type": "string", "enum": ["hello", "change", "reload"]},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"anyOf": [an_object(STATE), MAP_CHANGE]},
        },
    },
    "event",
    "data",
)
REVALIDATED: Document = {"If-None-Match": TEXT, "Accept-Encoding": TEXT}
TAGGED: Document = {
    "ETag": {"description": "Of this state of the fleet, in this encoding.", "schema": TEXT},
    "Content-Encoding": {"description": "`gzip`, if the caller accepts it.", "schema": TEXT},
    "Vary": {"description": "Accept-Encoding.", "schema": TEXT},
}

TIME: Document = {"type": "string", "format": "date-time"}
NATURAL: Document = {"type": "integer", "minimum": 1, "maximum": 10**15 - 1}
OWNER = {"type": maybe(TEXT), "project": TEXT, "user": TEXT, "since": maybe(TIME)}
PROVIDER = an_object(
    {
        "uuid": UUID,
        "name": TEXT,
        "generation": NUMBER,
        "parent": maybe(UUID),
        "depth": NUMBER,
        "traits": TEXTS,
        "aggregates": TEXTS,
        "attributes": a_map(TEXT),
        "inventories": a_map({"type": "object"}),
        "holders": a_list(
            an_object({"consumer": UUID, "pod": maybe(TEXT), **OWNER, "resources": AMOUNTS})
        ),
    }
)
POD = an_object(
    {
        "uid": TEXT,
        "namespace": TEXT,
        "name": TEXT,
        "app": maybe(TEXT),
        "resources": AMOUNTS,
        "devices": AMOUNTS,
    }
)
HOLDS = {"provider": UUID, "name": TEXT, "host": TEXT, "host_uuid": UUID, "resources": AMOUNTS}
MACHINE_GROUP = an_object(
    {
        "cluster": TEXT,
        "name": TEXT,
        "types": a_list(
            an_object(
                {
                    "type": TEXT,
                    "max": NUMBER,
                    "reserved": NUMBER,
                    "used": NUMBER,
                    "waiting": maybe(NUMBER),
                }
            )
        ),
        "holders": a_list(
            an_object(
                {
                    "consumer": UUID,
                    "type": TEXT,
                    "node": TEXT,
                    "stock": YES_OR_NO,
                    "project": TEXT,
                    "pod": maybe(TEXT),
                    "user": TEXT,
                    "from": TIME,
                    "until": maybe(TIME),
                }
            )
        ),
        "queue": maybe(
            a_list(
                an_object(
                    {
                        "position": NATURAL,
                        "consumer": TEXT,
                        "type": TEXT,
                        "project": TEXT,
                        "pod": TEXT,
                        "since": maybe(TIME),
                        "reason": maybe(TEXT),
                        "message": TEXT,
                    }
                )
            )
        ),
        "told_at": maybe(TIME),
    }
)
LISTED_GROUP: Document = {
    "project": TEXT,
    "app": TEXT,
    "version": TEXT,
    "group": TEXT,
    "path": TEXT,
    "state": maybe(TEXT),
    "revision": maybe(NUMBER),
}
VIEW_SCHEMAS: dict[str, Document] = {
    "Consumer": an_object(
        {
            "uuid": UUID,
            "pod": maybe(TEXT),
            **OWNER,
            "generation": NUMBER,
            "holds": a_list(an_object(HOLDS)),
        }
    ),
    "Host": an_object(
        {
            "uuid": UUID,
            "name": TEXT,
            "providers": a_list(PROVIDER),
            "pods": a_list(POD),
            "decisions": a_list(ref("Decision")),
        }
    ),
}

VIEWS: Mapping[tuple[str, str], Operation] = {
    ("GET", "/v1/map"): Operation(
        summary="The fleet in columns: hosts, what each has and what of it is in use, and their "
        "lanes (a resource class of one provider each).",
        headers=REVALIDATED,
        answers={200: MAP_DOCUMENT, 304: None},
        answer_headers=TAGGED,
    ),
    ("GET", "/v1/map/events"): Operation(
        summary="What changes of the map, as server-sent events: hello with the state as it is, "
        "change with what is in use of some hosts, reload when there are other hosts or units.",
        answers={200: MAP_EVENT},
        refusals=(429,),
        answer_type="text/event-stream",
    ),
    ("GET", "/v1/map/holders"): Operation(
        summary="In the order of the map: the project with the most consumers on each host.",
        answers={
            200: an_object(
                {
                    "layout": TEXT,
                    "projects": TEXTS,
                    "project": NUMBERS,
                    "consumers": NUMBERS,
                    "others": NUMBERS,
                }
            )
        },
    ),
    ("GET", "/v1/hosts/{host}"): Operation(
        summary="A tree: its providers, and who holds how much of each. Any of them names it. "
        "`pod` of a holder is the name of its pod, in the namespace `project`, where somebody told "
        "it (null: not known); `pods` are those seen on a node of a registered cluster, of which "
        "one holder may stand for many.",
        answers={200: ref("Host")},
    ),
    ("GET", "/v1/consumers"): Operation(
        summary="Who holds what, where and since when; newest first.",
        query={
            "type": "object",
            "properties": {
                "limit": {**NATURAL, "maximum": 1000},
                "after": NATURAL,
                "project": TEXT,
                "user": TEXT,
                "type": TEXT,
                "q": TEXT,
            },
        },
        answers={200: an_object({"consumers": a_list(ref("Consumer")), "next": maybe(NUMBER)})},
    ),
    ("GET", "/v1/consumers/{consumer}"): Operation(
        summary="One consumer, and what it holds.", answers={200: ref("Consumer")}
    ),
    ("GET", "/v1/classes/availability"): Operation(
        summary="How many units of each class are left, on how many nodes, and what classes have "
        "in common. Classes made of others have no nodes of their own.",
        answers={
            200: an_object(
                {
                    "classes": a_list(
                        an_object(
                            {
                                "name": TEXT,
                                "allocatable": NUMBER,
                                "requested": NUMBER,
                                "available": NUMBER,
                                "nodes": maybe(NUMBER),
                                "nodes_available": maybe(NUMBER),
                            }
                        )
                    ),
                    "overlaps": a_list(
                        an_object({"classes": TEXTS, "units": NUMBER, "available": NUMBER})
                    ),
                }
            )
        },
    ),
    ("GET", "/v1/machines"): Operation(
        summary="Stock of machines by group and type, who holds units, and who waits. What the "
        "operator of the cluster last told of a change, at `told_at`: `waiting` of each type, "
        "`queue` (in the order of serving, the first thousand of a group; `reason` is null "
        "while its turn is to come, or to come again), `pod` and `until` of holders (null: lent "
        "without an end). All of these are null where it told nothing.",
        answers={200: an_object({"groups": a_list(MACHINE_GROUP)})},
    ),
    ("GET", "/v1/intents"): Operation(
        summary="Deployment intent groups of all projects, or of one, and the state of each.",
        query={"type": "object", "properties": {"project_id": TEXT}},
        answers={200: an_object({"groups": a_list(an_object(LISTED_GROUP))})},
    ),
    ("GET", "/v1/explain/hosts"): Operation(
        summary="In the order of the map: whether a request fits each host (0), not now (1), "
        "never (2), or there was no time to tell (3).",
        query=LIST_CANDIDATES.at(NEWEST).schema,
        answers={
            200: an_object(
                {"version": TEXT, "layout": TEXT, "verdict": NUMBERS, "complete": YES_OR_NO}
            )
        },
        refusals=(404,),
    ),
}
