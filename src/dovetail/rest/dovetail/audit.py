"""/dovetail/v1/audit: is the ledger sound? GET looks, POST heals what can be healed."""

from __future__ import annotations

from dovetail.ledger.bulk import audit
from dovetail.ledger.bulk.audit import LedgerFault
from dovetail.rest.dovetail.parameters import only
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.writing import LongList, written_json


async def show(call: Call) -> Reply:
    only(call.query)
    found = await call.read(audit.examine)
    return Reply.in_pieces(await written(found.checked, found.faults))


async def heal(call: Call) -> Reply:
    only(call.query)
    healed, found = await call.write(audit.heal)
    return Reply.in_pieces(await written(found.checked, found.faults, healed))


async def written(
    checked: dict[str, int], faults: list[LedgerFault], healed: list[LedgerFault] | None = None
) -> list[bytes]:
    shown = {} if healed is None else {"healed": LongList(healed)}
    return await written_json({"checked": checked, **shown, "faults": LongList(faults)})
