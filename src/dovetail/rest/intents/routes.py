"""Routes of the door of intents, made from the registry of kinds, and those of actions."""

from __future__ import annotations

from functools import partial

from dovetail.intents.documents.kinds import KINDS, DocumentKind
from dovetail.rest.intents import actions, clouds, documents
from dovetail.rest.intents.actions import GROUP, acting
from dovetail.rest.intents.calls import handler
from dovetail.rest.server import policy
from dovetail.rest.server.routing import Endpoint, Routes


def read_action(kind: DocumentKind) -> str:
    if kind.name == "project":
        return policy.LIST_PROJECTS
    return {
        "projects": policy.READ_INTENTS,
        "cluster-providers": policy.READ_CLUSTERS,
    }.get(top_of(kind), policy.READ_CONTROLLERS)


def write_action(kind: DocumentKind) -> str:
    return {
        "projects": policy.WRITE_INTENTS,
        "cluster-providers": policy.WRITE_CLUSTERS,
    }.get(top_of(kind), policy.WRITE_CONTROLLERS)


def top_of(kind: DocumentKind) -> str:
    return kind.template().split("/")[1]


def document_routes(kind: DocumentKind) -> Routes:
    word = kind.name.replace("-", "_")

    def endpoint(verb: str, run: documents.OfKind, action: str, **more: bool) -> Endpoint:
        return Endpoint(handler(f"{verb}_{word}", partial(run, kind), kind), action, **more)

    reads, writes = read_action(kind), write_action(kind)
    # A project is for its readers, the list of all is not.
    reads_one = policy.READ_INTENTS if kind.name == "project" else reads
    uploads = bool(kind.file)
    return {
        kind.collection_template(): {
            "GET": endpoint("list", documents.listing, reads, queried=bool(kind.query)),
            "POST": endpoint("create", documents.create, writes, streams=uploads),
            "DELETE": endpoint("clear", documents.clear, writes),
        },
        kind.template(): {
            "GET": endpoint("show", documents.show, reads_one),
            "PUT": endpoint("replace", documents.replace, writes, streams=uploads),
            "DELETE": endpoint("drop", documents.drop, writes),
        },
    }


DEPLOY = policy.DEPLOY_INTENTS
GROUP_PATH = GROUP.template()
CLOUD_PATH = KINDS["logical-cloud"].template()

GROUP_ROUTES: Routes = {
    f"{GROUP_PATH}/approve": {
        "POST": Endpoint(handler("approve", acting(actions.approve), missing_in_emco=500), DEPLOY)
    },
    f"{GROUP_PATH}/instantiate": {
        "POST": Endpoint(
            handler("instantiate", acting(actions.instantiate), missing_in_emco=404), DEPLOY
        )
    },
    f"{GROUP_PATH}/terminate": {
        "POST": Endpoint(
            handler("terminate", acting(actions.terminate), missing_in_emco=500), DEPLOY
        )
    },
    f"{GROUP_PATH}/stop": {
        "POST": Endpoint(handler("stop", acting(actions.stop), missing_in_emco=500), DEPLOY)
    },
    f"{GROUP_PATH}/update": {
        "POST": Endpoint(
            handler(
                "update",
                acting(actions.update, "replace", empty_in_emco=False),
                missing_in_emco=404,
            ),
            DEPLOY,
        )
    },
    f"{GROUP_PATH}/rollback": {
        "POST": Endpoint(handler("rollback", acting(actions.rollback), missing_in_emco=404), DEPLOY)
    },
    f"{GROUP_PATH}/status": {
        "GET": Endpoint(
            handler("status", actions.status, missing_in_emco=400),
            policy.READ_INTENTS,
            gives_json=True,
        )
    },
    f"{GROUP_PATH}/plan": {
        "GET": Endpoint(handler("plan", actions.plan), policy.READ_INTENTS, gives_json=True)
    },
    f"{GROUP_PATH}/explain": {
        "GET": Endpoint(handler("explain", actions.explain), policy.READ_INTENTS, gives_json=True)
    },
}

CLOUD_ROUTES: Routes = {
    f"{CLOUD_PATH}/instantiate": {
        "POST": Endpoint(handler("instantiate_cloud", clouds.instantiate, clouds.CLOUD), DEPLOY)
    },
    f"{CLOUD_PATH}/terminate": {
        "POST": Endpoint(handler("terminate_cloud", clouds.terminate, clouds.CLOUD), DEPLOY)
    },
    f"{CLOUD_PATH}/status": {
        "GET": Endpoint(
            handler("show_cloud", clouds.status, clouds.CLOUD),
            policy.READ_INTENTS,
            gives_json=True,
        )
    },
}

ROUTES: Routes = {
    **{path: methods for kind in KINDS.values() for path, methods in document_routes(kind).items()},
    **GROUP_ROUTES,
    **CLOUD_ROUTES,
}

TOPS = tuple(dict.fromkeys(f"/{top_of(kind)}" for kind in KINDS.values()))
"""First segments of all routes."""
