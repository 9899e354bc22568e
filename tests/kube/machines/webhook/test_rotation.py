"""Rotation of certificates, with the clock in the test's hand: ten years in a second.

Whatever is served has to be trusted, at any time and by whoever heard of the last change late.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509 import verification

from dovetail.kube.api.port import ApiConflict
from dovetail.kube.machines.webhook.certificates import (
    AUTHORITIES,
    AUTHORITY_KEY,
    LEAF,
    LEAF_KEY,
    CertificateSet,
    Secret,
    is_signed_by,
    new_authority,
    pem_bundle,
    pem_key,
    read_set,
)
from dovetail.kube.machines.webhook.configuration import (
    KINDS,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
from dovetail.kube.machines.webhook.rotation import (
    AUTHORITY_LASTS,
    LEAF_LASTS,
    SETTLES_IN,
    CertificateRotation,
)
from dovetail.podfit.objects import KubeObject
from tests.support.kube.memory import MemoryApi

NAME, NAMESPACE = "hook", "dovetail"
HOST = "hook.dovetail.svc"
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
START = datetime(2026, 11, 16, 12, tzinfo=UTC)


class Install:
    """Secret and configurations as they are installed, and a leader that looks after them."""

    def __init__(self) -> None:
        self.api = MemoryApi()
        self.now = START
        self.rotation = self.leader(HOST)

    def leader(self, *hosts: str) -> CertificateRotation:
        return CertificateRotation(self.api, NAMESPACE, NAME, hosts, clock=lambda: self.now)

    async def put(self) -> Install:
        meta = {"name": NAME}
        await self.api.create(Secret, {"metadata": meta}, namespace=NAMESPACE)
        for kind, names in zip(KINDS, (("a.b.c", "d.e.f"), ("g.h.i",)), strict=True):
            hooks = [{"name": each, "clientConfig": {"url": "https://x"}} for each in names]
            await self.api.create(kind, {"metadata": meta, "webhooks": hooks})
        return self

    async def settle(self) -> int:
        """Steps until nothing is left to do now."""
        for count in range(10):
            if not await self.rotation.step():
                return count
        raise AssertionError("it never ends")

    async def after(self, time: timedelta) -> int:
        self.now += time
        return await self.settle()

    @property
    def kept(self) -> CertificateSet:
        found = read_set(self.api.everything(Secret)[f"{NAMESPACE}/{NAME}"].data)
        assert found is not None
        return found

    @property
    def leaf(self) -> x509.Certificate:
        found = self.kept.leaf
        assert found is not None
        return found.certificate

    def trusted(self) -> list[tuple[x509.Certificate, ...]]:
        """By each of the three webhooks."""
        return [
            tuple(x509.load_pem_x509_certificates(each.client_config.ca_bundle))
            for kind in KINDS
            for each in self.api.everything(kind)[NAME].webhooks
        ]

    def verify(self, leaf: x509.Certificate, host: str = HOST) -> None:
        """As API servers do, each with what it trusts. Raises VerificationError."""
        for bundle in self.trusted():
            policy = (
                verification.PolicyBuilder().store(verification.Store(list(bundle))).time(self.now)
            )
            policy.build_server_verifier(x509.DNSName(host)).verify(leaf, [])


async def installed() -> Install:
    found = await Install().put()
    await found.settle()
    return found


async def test_an_authority_and_a_leaf_are_made_and_trusted() -> None:
    found = await installed()
    found.verify(found.leaf)
    assert found.trusted() == [found.kept.authorities] * 3
    assert found.kept.authorities[0].not_valid_after_utc == START + 3650 * DAY
    assert found.leaf.not_valid_after_utc == START + 90 * DAY
    with pytest.raises(verification.VerificationError):
        found.verify(found.leaf, "elsewhere.dovetail.svc")


async def test_the_other_fields_of_the_configurations_stay() -> None:
    found = await installed()
    raw = found.api.raw(MutatingWebhookConfiguration, NAME)
    assert [each["name"] for each in raw["webhooks"]] == ["a.b.c", "d.e.f"]
    assert {each["clientConfig"]["url"] for each in raw["webhooks"]} == {"https://x"}


def writes(found: Install) -> int:
    verbs = ("merge", "apply", "create", "replace")
    return sum(count for (verb, _), count in found.api.calls.items() if verb in verbs)


async def test_nothing_is_written_while_nothing_is_due() -> None:
    found = await installed()
    before = writes(found)
    for _ in range(59):
        assert await found.after(DAY) == 0
    assert writes(found) == before


async def test_a_leaf_is_renewed_after_two_thirds_of_its_time_by_the_same_authority() -> None:
    found = await installed()
    first = found.leaf
    assert await found.after(60 * DAY - MINUTE) == 0
    assert await found.after(MINUTE) == 1
    assert found.leaf != first
    assert len(found.kept.authorities) == 1
    found.verify(found.leaf)
    found.verify(first)


async def test_an_authority_is_trusted_before_it_signs_and_while_what_it_signed_is_valid() -> None:
    found = await installed()
    old = found.kept.authorities[0]
    for _ in range(40):
        await found.after(60 * DAY)
    served = found.leaf
    await found.after(START + 3650 * DAY * 2 / 3 - found.now)
    # 1. Trusted everywhere, and not used: those who hear of it late still trust the old one.
    new = found.kept.authorities[0]
    assert found.trusted() == [(new, old)] * 3
    assert found.leaf == served
    assert is_signed_by(served, old)
    assert await found.after(MINUTE - timedelta(seconds=1)) == 0
    # 2. Used, while replicas that hear of it late still serve what the old one signed.
    assert await found.after(timedelta(seconds=1)) == 1
    assert is_signed_by(found.leaf, new)
    found.verify(found.leaf)
    found.verify(served)
    # 3. The old one goes when nothing that it signed can be valid any more.
    while len(found.kept.authorities) == 2:
        await found.after(DAY)
    assert served.not_valid_after_utc <= found.now
    assert found.now <= new.not_valid_before_utc + 92 * DAY
    assert found.trusted() == [(new,)] * 3
    found.verify(found.leaf)


async def test_what_is_served_is_trusted_for_nineteen_years() -> None:
    """Also by replicas that hear of the Secret late."""
    found = await installed()
    leaves, authorities = {found.leaf}, set(found.kept.authorities)
    served = found.leaf
    for _ in range(19 * 365 // 20):
        for time in (20 * DAY, MINUTE):
            await found.after(time)
            found.verify(served)
            found.verify(found.leaf)
        served = found.leaf
        leaves.add(served)
        authorities |= set(found.kept.authorities)
    assert len(authorities) == 3
    assert len(leaves) > 19 * 365 / 90


async def test_a_leader_that_was_away_for_too_long_starts_anew() -> None:
    found = await installed()
    await found.after(400 * DAY)
    found.verify(found.leaf)
    assert len(found.kept.authorities) == 1
    await found.after(4000 * DAY)
    found.verify(found.leaf)


async def test_another_host_needs_another_leaf() -> None:
    found = await installed()
    found.rotation = found.leader(HOST, "192.0.2.7")
    assert await found.settle() == 1
    found.verify(found.leaf)
    names = found.leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["192.0.2.7"]
    assert await found.settle() == 0


async def test_a_configuration_that_was_installed_again_or_changed_is_mended() -> None:
    found = await installed()
    kept = found.api.raw(Secret, NAME, NAMESPACE)
    await found.api.delete(ValidatingWebhookConfiguration, NAME)
    assert await found.settle() == 0
    body = {"metadata": {"name": NAME}, "webhooks": [{"name": "g.h.i", "clientConfig": {}}]}
    await found.api.create(ValidatingWebhookConfiguration, body)
    await found.settle()
    found.verify(found.leaf)
    assert found.api.raw(Secret, NAME, NAMESPACE) == kept


async def test_without_configurations_there_is_a_certificate_all_the_same() -> None:
    found = Install()
    await found.api.create(Secret, {"metadata": {"name": NAME}}, namespace=NAMESPACE)
    await found.settle()
    assert is_signed_by(found.leaf, found.kept.authorities[0])


async def empty(found: Install) -> None:
    data = dict.fromkeys((AUTHORITIES, AUTHORITY_KEY, LEAF, LEAF_KEY))
    await found.api.merge(Secret, NAME, {"data": data}, namespace=NAMESPACE)


async def test_a_secret_that_somebody_emptied_is_filled_and_what_is_served_stays_trusted() -> None:
    found = await installed()
    served = found.leaf
    await empty(found)
    await found.settle()
    found.verify(served)
    found.verify(found.leaf)
    for _ in range(10):
        await empty(found)
        await found.settle()
    assert len(found.kept.authorities) == 4
    found.verify(found.leaf)
    await found.after(91 * DAY)
    await found.after(MINUTE)
    assert len(found.kept.authorities) == 1


OTHER = new_authority(START, DAY)
SPOILED = {
    "no leaf": {LEAF: b"not a certificate"},
    "the key of another leaf": {LEAF_KEY: pem_key(OTHER.key)},
    "no authority": {AUTHORITIES: b"not a certificate"},
    "the key of another authority": {AUTHORITY_KEY: pem_key(OTHER.key)},
    "another authority": {
        AUTHORITIES: pem_bundle([OTHER.certificate]),
        AUTHORITY_KEY: pem_key(OTHER.key),
    },
}


@pytest.mark.parametrize("data", SPOILED.values(), ids=SPOILED)
async def test_what_somebody_spoiled_is_made_anew(data: dict[str, bytes]) -> None:
    found = await installed()
    await found.api.merge(Secret, NAME, {"data": data}, namespace=NAMESPACE)
    await found.settle()
    found.verify(found.leaf)
    assert await found.settle() == 0


async def test_of_two_who_write_at_once_one_gives_way() -> None:
    found = await Install().put()

    async def first(verb: str, kind: type[KubeObject], name: str) -> None:
        if verb == "merge":
            found.api.before = None
            await found.leader(HOST).step()

    found.api.before = first
    assert not await found.rotation.step()
    kept = found.kept.authorities
    await found.settle()
    assert found.kept.authorities == kept
    found.verify(found.leaf)


async def test_a_configuration_that_goes_meanwhile_is_not_made() -> None:
    found = await Install().put()
    await found.rotation.step()

    async def gone(verb: str, kind: type[KubeObject], name: str) -> None:
        if verb == "apply":
            raise ApiConflict(409, "Conflict", "uid mismatch: no existing object was found")

    found.api.before = gone
    with pytest.raises(ApiConflict):
        await found.rotation.step()


def test_a_leaf_lasts_longer_than_trust_takes_to_spread() -> None:
    assert SETTLES_IN < LEAF_LASTS / 3
    assert LEAF_LASTS < AUTHORITY_LASTS / 3
