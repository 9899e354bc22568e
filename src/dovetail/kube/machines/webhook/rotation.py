"""Rotation of the webhook's certificates, before they end; the leading replica runs it.

Trust comes before use. A new authority is first written to the Secret and to the configurations,
beside the old one; a leaf that it signed is served only when every API server had time to hear of
it; and the old one is trusted until nothing that it signed is valid any more. Each step is taken
from what Secret and configurations say, so another leader goes on wherever the last one stopped.
Of two that think they lead, one has its write refused.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import structlog
from cryptography import x509
from msgspec.structs import replace

from dovetail.kube.api.port import ApiConflict, ApiError, ApiNotFound, ApiUnreachable, KubeApi
from dovetail.kube.machines.webhook.certificates import (
    CertificateSet,
    Secret,
    hosts_of,
    is_signed_by,
    made_at,
    new_authority,
    new_leaf,
    read_bundle,
    read_set,
    written_set,
)
from dovetail.kube.machines.webhook.configuration import (
    KINDS,
    WebhookConfiguration,
    bundles_of,
    trusting,
)
from dovetail.kube.runtime.apply import FieldOwner

LOG = structlog.get_logger("dovetail.kube.machines.webhook")

AUTHORITY_LASTS, LEAF_LASTS = timedelta(days=3650), timedelta(days=90)
"""Both are made anew after two thirds of their time."""
SETTLES_IN = timedelta(minutes=1)
"""From when an authority is made until a leaf of it replaces one that is still good."""
LOOK_SECONDS = 10.0
"""Between two looks at Secret, configurations and clock."""
MOST_AUTHORITIES = 4
"""Trusted at a time: more are only there if somebody deletes the Secret's data again and again."""


def is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether two thirds of its time are over."""
    start, end = made_at(certificate), certificate.not_valid_after_utc
    return now >= start + (end - start) * 2 / 3


def next_set(
    found: CertificateSet | None,
    trusted: Sequence[tuple[x509.Certificate, ...]],
    hosts: Sequence[str],
    now: datetime,
) -> CertificateSet:
    """What the Secret should hold next; the same, if nothing is to be done now.

    `trusted` is what each webhook's configuration trusts at present.
    """
    if found is None:
        # Replicas may still serve what was in the Secret before it was emptied.
        others = dict.fromkeys(each for bundle in trusted for each in bundle)
        return _with_authority((*others,), None, now)
    if is_due(found.authorities[0], now):
        return _with_authority(found.authorities, found, now)
    if _leaf_is_due(found, trusted, hosts, now):
        return replace(found, leaf=new_leaf(found.newest, hosts, now, LEAF_LASTS))
    old_are_over = made_at(found.authorities[0]) + SETTLES_IN + LEAF_LASTS
    if len(found.authorities) > 1 and now >= old_are_over:
        return replace(found, authorities=found.authorities[:1])
    return found


def _with_authority(
    others: Sequence[x509.Certificate],
    found: CertificateSet | None,
    now: datetime,
) -> CertificateSet:
    made = new_authority(now, AUTHORITY_LASTS)
    valid = [each for each in others if each.not_valid_after_utc > now]
    return CertificateSet(
        (made.certificate, *valid[: MOST_AUTHORITIES - 1]),
        made.key,
        None if found is None else found.leaf,
    )


def _leaf_is_due(
    found: CertificateSet,
    trusted: Sequence[tuple[x509.Certificate, ...]],
    hosts: Sequence[str],
    now: datetime,
) -> bool:
    newest = found.authorities[0]
    if not all(newest in bundle for bundle in trusted):
        return False
    if found.leaf is None or hosts_of(found.leaf.certificate) != frozenset(hosts):
        return True
    leaf = found.leaf.certificate
    signer = next((each for each in found.authorities if is_signed_by(leaf, each)), None)
    if signer is newest:
        return is_due(leaf, now)
    is_good = signer is not None and now < leaf.not_valid_after_utc
    return not is_good or now >= made_at(newest) + SETTLES_IN


class CertificateRotation:
    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        name: str,
        hosts: Sequence[str],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`name` is that of the Secret and of both configurations; `hosts` the API server calls."""
        self._api = api
        self._fields = FieldOwner(api, "dovetail-webhook")
        self._namespace, self._name, self._hosts = namespace, name, hosts
        self._clock = clock

    async def run(self, is_ours: Callable[[], bool]) -> None:
        """Until cancelled; whenever it is this replica's task."""
        while True:
            try:
                while is_ours() and await self.step():
                    pass
            except (ApiError, ApiUnreachable) as error:
                LOG.warning("certificates not looked after", error=str(error))
            await asyncio.sleep(LOOK_SECONDS)

    async def step(self) -> bool:
        """Do the next thing, if there is one; False if all is as it should be for now.

        Raises ApiError, ApiUnreachable.
        """
        secret = await self._api.get(Secret, self._name, self._namespace)
        configurations = await self._configurations()
        found = read_set(secret.data)
        trusted = [read_bundle(each) for one in configurations for each in bundles_of(one)]
        wanted = next_set(found, trusted, self._hosts, self._clock())
        if wanted is not found:
            return await self._keep(secret, wanted)
        changed = False
        for one in configurations:
            if any(each != wanted.bundle for each in bundles_of(one)):
                await self._trust(one, wanted.bundle)
                changed = True
        return changed

    async def _configurations(self) -> list[WebhookConfiguration]:
        """As far as they are installed."""
        found: list[WebhookConfiguration] = []
        for kind in KINDS:
            try:
                found.append(await self._api.get(kind, self._name))
            except ApiNotFound:
                continue
        return found

    async def _keep(self, secret: Secret, wanted: CertificateSet) -> bool:
        """False if somebody else wrote to the Secret: they may have done the same."""
        data = {key: b64encode(value).decode() for key, value in written_set(wanted).items()}
        body = {"metadata": {"resourceVersion": secret.metadata.resource_version}, "data": data}
        try:
            await self._api.merge(Secret, self._name, body, namespace=self._namespace)
        except ApiConflict:
            return False
        leaf = wanted.leaf.certificate if wanted.leaf is not None else None
        LOG.info(
            "certificates written",
            authorities=len(wanted.authorities),
            until=str(leaf.not_valid_after_utc) if leaf is not None else None,
        )
        return True

    async def _trust(self, configuration: WebhookConfiguration, bundle: bytes) -> None:
        LOG.info("authorities trusted", configuration=type(configuration).API.kind)
        fields = trusting(configuration, bundle)
        await self._fields.put(type(configuration), self._name, fields)
