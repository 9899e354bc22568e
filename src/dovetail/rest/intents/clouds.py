"""What is done with a logical cloud: it is instantiated before groups are deployed to it."""

from __future__ import annotations

from dovetail.ledger import Transaction
from dovetail.ledger.intents import objects
from dovetail.rest.intents.calls import is_emco, path_of, refuse_unknown
from dovetail.rest.server.http import Call, Reply
from dovetail.service.intents import objects as store

CLOUD = store.CLOUD


async def instantiate(call: Call) -> Reply:
    refuse_unknown(call, ())
    path = path_of(CLOUD, call)
    await call.write(lambda tx: store.instantiate_cloud(tx, path))
    return call.empty(202) if is_emco(call) else await told(call, 202)


async def terminate(call: Call) -> Reply:
    refuse_unknown(call, ())
    path = path_of(CLOUD, call)
    await call.write(lambda tx: store.terminate_cloud(tx, path))
    return call.empty(202) if is_emco(call) else await told(call, 202)


async def status(call: Call) -> Reply:
    refuse_unknown(call, ())
    return await told(call, 200)


async def told(call: Call, status: int) -> Reply:
    path = path_of(CLOUD, call)

    def read(tx: Transaction) -> dict[str, object]:
        found = store.get(tx, CLOUD, path)
        references = objects.listing(tx, path, "cluster-reference")
        specs = (store.document_of(each)["spec"] for each in references)
        return {
            "project": call.params["project"],
            "name": found.name,
            "state": store.cloud_state(found),
            "clusters": [f"{each['clusterProvider']}+{each['cluster']}" for each in specs],
        }

    return call.json(await call.read(read), status)
