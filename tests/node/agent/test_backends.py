"""What each back end can bring into containers, and how it tells what it cannot."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from dovetail.node.agent.backends import CriBackend, NriBackend, ProxyBackend, RuntimeBackend
from dovetail.node.agent.settings import RuntimeSettings
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.cri.client import CriRuntime
from dovetail.node.wire import cri
from dovetail.wire.rpc import Served, offer
from tests.support.node.containerd import Containerd
from tests.support.node.gates import Scripted

CDI = ContainerSettings(cdi_devices=("vendor.com/gpu=0",))
OTHERS = ContainerSettings(envs={"a": "b"})


@pytest.fixture
def settings() -> Iterator[RuntimeSettings]:
    made = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    yield RuntimeSettings(socket=str(made / "r.sock"), listen=str(made / "l.sock"))
    shutil.rmtree(made)


def playing(told: Any) -> Any:
    """A runtime that tells this of its settings."""

    async def status(question: cri.StatusRequest) -> cri.StatusResponse:
        assert question.verbose
        return cri.StatusResponse(info={} if told is None else {"config": told})

    server = grpc.aio.server()
    offer(server, [Served(cri.STATUS, status)])
    return server


async def closed(backend: RuntimeBackend) -> None:
    assert isinstance(backend.runtime, CriRuntime)
    await backend.runtime.close()


async def test_cri_alone_brings_in_nothing(settings: RuntimeSettings) -> None:
    backend = CriBackend(settings)
    assert "can bring no device into them" in (await backend.why_not(ContainerSettings()) or "")
    await closed(backend)


@pytest.mark.parametrize(
    ("told", "brings_in"),
    [
        (json.dumps({"containerd": {}, "enableCDI": True}), True),
        (json.dumps({"containerd": {}, "enableCDI": False}), False),
        (json.dumps({"containerd": {}}), False),
        (json.dumps({"crio": {}}), True),
        ("[crio]", True),
        (None, True),
    ],
)
async def test_the_proxy_brings_in_cdi_devices_where_the_runtime_does(
    settings: RuntimeSettings, told: Any, *, brings_in: bool
) -> None:
    server, backend = playing(told), ProxyBackend(settings, Scripted())
    server.add_insecure_port(f"unix:{settings.socket}")
    await server.start()
    try:
        why = await backend.why_not(CDI)
        assert (why is None) is brings_in, why
        assert await backend.why_not(OTHERS) is None
    finally:
        await closed(backend)
        await server.stop(0)


async def test_a_runtime_that_does_not_answer_brings_in_nothing(settings: RuntimeSettings) -> None:
    backend = ProxyBackend(settings, Scripted())
    assert "does not tell whether" in (await backend.why_not(CDI) or "")
    await closed(backend)


async def test_nri_brings_in_cdi_devices_by_the_version_of_the_runtime(
    settings: RuntimeSettings,
) -> None:
    backend = NriBackend(settings, Scripted())
    assert "is not known to bring in CDI devices" in (await backend.why_not(CDI) or "")
    assert await backend.why_not(OTHERS) is None


async def test_a_real_containerd_without_cdi_says_so(server: Containerd) -> None:
    runtime = CriRuntime(server.socket)
    assert "leaves out CDI devices" in (await runtime.why_no_cdi() or "")
    await runtime.close()
