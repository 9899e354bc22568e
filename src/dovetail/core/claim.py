"""Claims: the allocations of a consumer, as asked for and as recorded by the ledger."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

Allocations = Mapping[str, Mapping[str, int]]
"""Amounts by resource class name by provider uuid."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A request to make `allocations` all that the consumer holds; empty releases everything."""

    consumer: str
    project: str
    user: str
    consumer_type: str | None = None
    """None leaves the type of an existing consumer as it is."""
    allocations: Allocations
    generation: int | None = None
    """The consumer's generation as the client knows it; None: there should be no such consumer."""
    check_generation: bool = True


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """One amount of one class that a consumer holds on a provider."""

    provider_uuid: str
    provider_generation: int
    class_name: str
    amount: int
    created_at: int


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one consumer holds."""

    consumer: str
    project: str
    user: str
    consumer_type: str | None
    generation: int
    held: tuple[Held, ...]
