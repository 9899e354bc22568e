"""/dovetail/v1/providers/{uuid}/attributes: what selectors look at."""

from __future__ import annotations

import msgspec

from dovetail.core.provider import Provider
from dovetail.core.selectors.attributes import (
    LONGEST_KEY,
    LONGEST_VALUE,
    MOST_ATTRIBUTES,
    Attributes,
)
from dovetail.ledger import Transaction, attributes, providers
from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.validation import refuse_nul

LONGEST_BODY = 6 * MOST_ATTRIBUTES * (LONGEST_KEY + LONGEST_VALUE + 8) + 1024
"""As many as there may be, however they are escaped."""


class ProviderAttributes(msgspec.Struct, forbid_unknown_fields=True):
    """The attributes of a provider, and the generation in which it has them."""

    attributes: Attributes
    resource_provider_generation: int


def reply(call: Call, provider: Provider, found: dict[str, str]) -> Reply:
    shown = {"attributes": found, "resource_provider_generation": provider.generation}
    return call.json(shown, modified=provider.changed_at)


async def show(call: Call) -> Reply:
    def read(tx: Transaction) -> tuple[Provider, dict[str, str]]:
        provider = providers.get(tx, call.params["uuid"])
        return provider, attributes.of_provider(tx, provider)

    return reply(call, *await call.read(read))


async def replace(call: Call) -> Reply:
    wanted = attributes_in(call.body)

    def assign(tx: Transaction) -> Provider:
        known = wanted.resource_provider_generation
        provider = providers.get_current(tx, call.params["uuid"], known)
        return attributes.assign(tx, provider, wanted.attributes)

    provider = await call.write(assign)
    return reply(call, provider, dict(sorted(wanted.attributes.items())))


def attributes_in(body: bytes) -> ProviderAttributes:
    if len(body) > LONGEST_BODY:
        raise HttpError(
            413,
            f"The attributes of a provider, {MOST_ATTRIBUTES} at most, fit in {LONGEST_BODY}.",
        )
    refuse_nul(body)
    try:
        return msgspec.json.decode(body, type=ProviderAttributes)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the attributes are not as they should be: {error}") from error
