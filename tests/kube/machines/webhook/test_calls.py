"""A real API server calls the webhook: whom it is asked for, what becomes of them, and certificates
that change under way. The operator's account has the rights of the manifest, and no others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dovetail.aio.supervise import run_together
from dovetail.kube.api.client import connect
from dovetail.kube.api.port import KubeApi
from dovetail.kube.machines.webhook.app import application
from dovetail.kube.machines.webhook.certificates import (
    LEAF,
    CertificateSet,
    Secret,
    is_signed_by,
    read_set,
)
from dovetail.kube.machines.webhook.review import Reviewer
from dovetail.kube.machines.webhook.rotation import CertificateRotation
from dovetail.kube.machines.webhook.tls import ServedCertificate
from dovetail.kube.runtime.informer import Informer
from dovetail.kube.runtime.serving import listen, serve
from dovetail.machines.names import (
    CREATOR,
    ENABLED,
    INJECT_RESOURCE,
    INJECT_RESOURCE_ALIAS,
    POD_ROLE,
    UNIT_GATE,
)
from tests.kube.conftest import needs_kubernetes
from tests.kube.machines.bed import ACCOUNT, GROUPS
from tests.kube.machines.webhook.calling import (
    HOST,
    NAME,
    NAMESPACE,
    documents,
)
from tests.kube.machines.webhook.observed import pod, state
from tests.support.kube.cluster import Cluster
from tests.support.loops import eventually
from tests.support.processes import reserved_port

CREATED, INVALID, FAILED = 201, 422, 500
DAY = timedelta(days=1)
SPACES = {
    "team": {INJECT_RESOURCE: ENABLED},
    "alias": {INJECT_RESOURCE_ALIAS: ENABLED},
    "both": {INJECT_RESOURCE: ENABLED, INJECT_RESOURCE_ALIAS: ENABLED},
    "apart": {},
    "declined": {INJECT_RESOURCE: "disabled"},
    NAMESPACE: {INJECT_RESOURCE: ENABLED},
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with reserved_port() as found:
        yield found


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Cluster]:
    needs_kubernetes()
    with Cluster.running(tmp_path_factory.mktemp("called")) as running:
        running.start_controllers()
        for name, labels in SPACES.items():
            running.make_namespace(name, labels)
        running.apply(*documents(port))
        yield running


class Webhook:
    """Answers from what `observed` tells; its certificates are looked after by whom tests say."""

    def __init__(self, api: KubeApi, port: int) -> None:
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.served = ServedCertificate()
        self.rotation = CertificateRotation(
            api, NAMESPACE, NAME, [HOST, f"{NAME}.{NAMESPACE}.svc"], clock=lambda: self.now
        )
        self._api = api
        self._port = port

    async def run(self) -> None:
        secret = Informer(self._api, Secret, NAMESPACE, fields=f"metadata.name={NAME}")
        secret.on(self.served.on_secret)
        await run_together(secret.run(), self._serve())

    async def _serve(self) -> None:
        await self.served.until_loaded()
        await serve(application(Reviewer(state())), listen(HOST, self._port), self.served.context)

    async def settle(self) -> None:
        """Look after certificates, until nothing is left to do now and the newest is served."""
        while await self.rotation.step():
            pass
        chain = (await self._api.get(Secret, NAME, NAMESPACE)).data[LEAF]
        await eventually(lambda: self.served.pem.startswith(chain))

    async def kept(self) -> CertificateSet:
        found = read_set((await self._api.get(Secret, NAME, NAMESPACE)).data)
        assert found is not None
        return found


@asynccontextmanager
async def serving(cluster: Cluster, port: int) -> AsyncIterator[Webhook]:
    async with connect(str(cluster.user(ACCOUNT, GROUPS)), agent="dovetail-operator") as api:
        webhook = Webhook(api, port)
        running = asyncio.create_task(webhook.run())
        try:
            yield webhook
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def create(
    cluster: Cluster, given: Mapping[str, Any], space: str = "team", *, dry: bool = True
) -> tuple[int, Any]:
    path = f"/api/v1/namespaces/{space}/pods" + ("?dryRun=All" if dry else "")
    status, said = await asyncio.to_thread(cluster.request, "POST", path, given)
    return status, json.loads(said)


async def until_called(cluster: Cluster) -> None:
    """API servers take a moment to hear of configurations."""
    async with asyncio.timeout(30):
        while (await create(cluster, pod()))[0] != CREATED:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def test_guests_of_opted_in_namespaces_are_injected_and_nobody_else(
    called: Cluster, port: int
) -> None:
    async with serving(called, port) as webhook:
        await webhook.settle()
        await until_called(called)
        for space in ("team", "alias", "both"):
            status, made = await create(called, pod(), space)
            assert status == CREATED, made
            assert made["spec"]["schedulingGates"] == [{"name": UNIT_GATE}]
            assert made["metadata"]["annotations"][CREATOR] == "admin"
            resources = made["spec"]["containers"][0]["resources"]
            assert resources["requests"] == resources["limits"] == {"cpu": "8", "memory": "16Gi"}
        for space in ("apart", "declined", NAMESPACE):
            status, made = await create(called, pod("unheard-of", "unheard-of"), space)
            assert status == CREATED, made
            assert "schedulingGates" not in made["spec"]
        other = pod("unheard-of", "unheard-of")
        other["metadata"]["labels"][POD_ROLE] = "host"
        assert (await create(called, other))[0] == CREATED


async def test_a_refusal_has_words_field_and_code(called: Cluster, port: int) -> None:
    async with serving(called, port) as webhook:
        await webhook.settle()
        await until_called(called)
        status, said = await create(called, pod("lab", "huge"))
        assert status == INVALID
        assert said["message"] == (
            'admission webhook "guests.machines.imperator.tenzen-y.io" denied the request:'
            " metadata.labels[imperator.tenzen-y.io/machine-type]: there is no type 'huge' in"
            " group 'lab': it has whole, other"
        )
        causes = said["details"]["causes"]
        assert [each["field"] for each in causes] == [
            "metadata.labels[imperator.tenzen-y.io/machine-type]"
        ]
        shown = await asyncio.to_thread(
            called.kubectl, "create", "-n", "team", "-f", "-", given=pod("lab", "huge"), check=False
        )
        assert "there is no type 'huge' in group 'lab'" in shown


async def test_a_generated_name_is_fine_and_a_dry_run_leaves_nothing(
    called: Cluster, port: int
) -> None:
    async with serving(called, port) as webhook:
        await webhook.settle()
        await until_called(called)
        status, made = await create(called, pod(), dry=False)
        assert status == CREATED, made
        assert made["metadata"]["name"].startswith("train-")
        listed = json.loads(called.kubectl("get", "pods", "-n", "team", "-o", "json"))
        assert [each["metadata"]["name"] for each in listed["items"]] == [made["metadata"]["name"]]
        path = f"/api/v1/namespaces/team/pods/{made['metadata']['name']}"
        called.request("DELETE", f"{path}?gracePeriodSeconds=0")


async def test_without_it_only_guests_of_opted_in_namespaces_have_to_wait(
    called: Cluster, port: int
) -> None:
    async with serving(called, port) as webhook:
        await webhook.settle()
        await until_called(called)
    for space in ("team", "alias"):
        status, said = await create(called, pod(), space)
        assert status == FAILED
        assert "failed calling webhook" in said["message"]
    plain = pod()
    del plain["metadata"]["labels"]
    for space in SPACES:
        assert (await create(called, plain, space))[0] == CREATED
    for space in ("apart", NAMESPACE):
        assert (await create(called, pod(), space))[0] == CREATED
    async with serving(called, port) as webhook:
        await until_called(called)


class Creating:
    """Guests, one after the other, until the block ends; what went wrong with them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.count = 0
        self.failures: list[Any] = []

    async def __aenter__(self) -> Creating:
        self._task = asyncio.create_task(self._create())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _create(self) -> None:
        while True:
            status, said = await create(self._cluster, pod())
            self.count += 1
            if status != CREATED:
                self.failures.append(said)

    async def more(self, count: int = 20) -> None:
        wanted = self.count + count
        await eventually(lambda: self._task.done() or self.count >= wanted, 60)


async def test_certificates_and_authorities_change_while_guests_are_created(
    called: Cluster, port: int
) -> None:
    """The clock of whoever looks after them is set back at first: what is made then is due now."""
    await asyncio.to_thread(empty_secret, called)
    async with serving(called, port) as webhook:
        today = webhook.now
        for days in (2450, 61):
            webhook.now = today - days * DAY
            await webhook.settle()
        await until_called(called)
        before = await webhook.kept()
        async with Creating(called) as creating:
            await creating.more()
            # A new authority, beside the old one, and the old leaf.
            webhook.now = today
            await webhook.settle()
            between = await webhook.kept()
            await creating.more()
            # A new leaf by the new authority.
            webhook.now = today + timedelta(minutes=1)
            await webhook.settle()
            after = await webhook.kept()
            await creating.more()
            assert not creating.failures
    assert before.leaf is not None
    assert between.leaf is not None
    assert after.leaf is not None
    assert between.authorities[1:] == before.authorities[:1]
    assert between.leaf.certificate == before.leaf.certificate
    assert after.authorities == between.authorities
    assert is_signed_by(after.leaf.certificate, after.authorities[0])


def empty_secret(cluster: Cluster) -> None:
    patch = ("--type=merge", "-p", '{"data": null}')
    cluster.kubectl("patch", "secret", NAME, "-n", NAMESPACE, *patch)
