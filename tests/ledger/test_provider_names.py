"""Providers by name or by UUID."""

from __future__ import annotations

from contextlib import suppress

import pytest

from dovetail.core.errors import Malformed, NotFound
from dovetail.ledger import Ledger, provider_names, providers
from tests.ledger.world import make, new


def test_either_key_finds_a_provider_and_its_host(ledger: Ledger) -> None:
    host = make(ledger, "host")
    child = make(ledger, "child", host)
    found = ledger.read(lambda tx: provider_names.find(tx, ["child", host.uuid, "nobody"])).result()
    assert found.keys() == {"child", host.uuid}
    assert (found["child"].uuid, found["child"].host) == (child.uuid, "host")
    assert (found[host.uuid].name, found[host.uuid].host_uuid) == ("host", host.uuid)
    with pytest.raises(NotFound, match="'nobody'"):
        ledger.read(lambda tx: provider_names.get(tx, "nobody")).result()


def test_a_uuid_goes_before_a_name_that_reads_the_same(ledger: Ledger) -> None:
    host = make(ledger, "host")
    ledger.write(lambda tx: providers.create(tx, host.uuid, new(), None)).result()
    assert ledger.read(lambda tx: provider_names.get(tx, host.uuid)).result().name == "host"


def test_text_that_no_name_can_have_finds_nothing(ledger: Ledger) -> None:
    # PostgreSQL cannot even be asked for it.
    with suppress(Malformed):
        assert ledger.read(lambda tx: provider_names.find(tx, ["a\x00b", "'; --"])).result() == {}
