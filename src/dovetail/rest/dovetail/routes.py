"""Every endpoint that is Dovetail's own, by its path below /dovetail."""

from __future__ import annotations

from dovetail.rest.dovetail import (
    attributes,
    audit,
    claims,
    classes,
    decisions,
    devices,
    dump,
    explain,
    fleet,
    names,
    usage,
    whatif,
)
from dovetail.rest.dovetail.views import (
    availability,
    fleet_map,
    groups,
    holders,
    hosts,
    machines,
    verdicts,
)
from dovetail.rest.server.policy import (
    AUDIT,
    CLAIM,
    DEVICES,
    DUMP,
    EXPLAIN,
    FLEET,
    HEAL,
    HOLDERS,
    MAP,
    NAMES,
    READ_INTENTS,
    SET_ATTRIBUTES,
    SET_CLASSES,
    SHOW_ATTRIBUTES,
    SHOW_CLASSES,
    TOTALS,
)
from dovetail.rest.server.routing import Endpoint, Routes

ROUTES: Routes = {
    "/v1/fleet": {
        "GET": Endpoint(dump.dump, DUMP),
        "POST": Endpoint(fleet.load, FLEET, streams=True),
    },
    "/v1/map": {"GET": Endpoint(fleet_map.show, MAP, gives_json=True)},
    "/v1/map/events": {"GET": Endpoint(fleet_map.events, MAP)},
    "/v1/map/holders": {"GET": Endpoint(holders.on_map, HOLDERS, gives_json=True)},
    "/v1/hosts/{host}": {"GET": Endpoint(hosts.show, HOLDERS, gives_json=True)},
    "/v1/consumers": {"GET": Endpoint(holders.listing, HOLDERS, gives_json=True)},
    "/v1/consumers/{consumer}": {"GET": Endpoint(holders.show, HOLDERS, gives_json=True)},
    "/v1/explain/hosts": {"GET": Endpoint(verdicts.show, EXPLAIN, gives_json=True)},
    "/v1/explain": {"GET": Endpoint(explain.show, EXPLAIN, gives_json=True)},
    "/v1/whatif": {
        "POST": Endpoint(whatif.ask, EXPLAIN, takes_json=True, gives_json=True, reads=True)
    },
    "/v1/claims": {
        "POST": Endpoint(claims.claim, CLAIM, takes_json=True, gives_json=True, claims=True)
    },
    "/v1/decisions": {"GET": Endpoint(decisions.listing, EXPLAIN, gives_json=True)},
    "/v1/names": {"POST": Endpoint(names.look_up, NAMES, takes_json=True, reads=True)},
    "/v1/usage": {"GET": Endpoint(usage.by_class, TOTALS, gives_json=True)},
    "/v1/providers/{uuid}/attributes": {
        "GET": Endpoint(attributes.show, SHOW_ATTRIBUTES, gives_json=True),
        "PUT": Endpoint(attributes.replace, SET_ATTRIBUTES, takes_json=True, gives_json=True),
    },
    "/v1/classes": {"GET": Endpoint(classes.listing, SHOW_CLASSES, gives_json=True)},
    "/v1/classes/availability": {"GET": Endpoint(availability.show, SHOW_CLASSES, gives_json=True)},
    "/v1/machines": {"GET": Endpoint(machines.show, HOLDERS, gives_json=True)},
    "/v1/intents": {"GET": Endpoint(groups.listing, READ_INTENTS, gives_json=True)},
    "/v1/classes/{class_name}": {
        "GET": Endpoint(classes.show, SHOW_CLASSES, gives_json=True),
        "PUT": Endpoint(classes.define, SET_CLASSES, takes_json=True, gives_json=True),
        "DELETE": Endpoint(classes.drop, SET_CLASSES),
    },
    "/v1/devices": {"GET": Endpoint(devices.listing, DEVICES, gives_json=True)},
    "/v1/audit": {
        "GET": Endpoint(audit.show, AUDIT, gives_json=True),
        "POST": Endpoint(audit.heal, HEAL),
    },
}
