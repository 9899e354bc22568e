"""CreateContainer of a container with devices, to a runtime in memory: directly and by the proxy.

The proxy gives it what a device plugin of two GPUs would: device nodes, mounts, an environment,
annotations and CDI names. The runtime answers at once, so what is left is what the proxy adds; a
real one takes a hundred times as long.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import grpc
from tests.support.processes import Process

from dovetail.node.wire import cri
from dovetail.wire.codec import encode

from .answering import CREATE
from .times import Times

WARM_UP = 200
ENVIRONMENT, MOUNTS = 40, 8
"""As many variables and mounts as a pod of a cluster with some services has."""


def measure(calls: int) -> tuple[Times, Times]:
    """In turn, so that whatever else the machine does meets both."""
    with tempfile.TemporaryDirectory(prefix="dt", dir="/tmp") as made:
        directory = Path(made)
        runtime, proxy = directory / "r.sock", directory / "p.sock"
        answering = [sys.executable, "-m", "bench.agent.answering", str(runtime)]
        served = [sys.executable, "-m", "bench.agent.served", str(proxy), str(runtime), "--devices"]
        with Process(answering, directory / "r.log"), Process(served, directory / "p.log"):
            ways = (asking(runtime), asking(proxy))
            for _ in range(WARM_UP):
                for ask in ways:
                    ask()
            times = (Times(), Times())
            for _ in range(calls):
                for ask, found in zip(ways, times, strict=True):
                    with found.one():
                        ask()
            return times


def asking(socket: Path) -> Callable[[], object]:
    channel = grpc.insecure_channel(f"unix:{socket}")
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(CREATE)
    question = encode(request())
    return lambda: call(question, timeout=10, wait_for_ready=True)


def request() -> cri.CreateContainerRequest:
    """As a kubelet writes it."""
    return cri.CreateContainerRequest(
        pod_sandbox_id="1" * 64,
        config=cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name="main"),
            envs=tuple(
                cri.KeyValue(key=f"SERVICE_{number}_PORT", value=b"tcp://10.0.0.1:443")
                for number in range(ENVIRONMENT)
            ),
            mounts=tuple(
                cri.Mount(
                    container_path=f"/var/run/{number}",
                    host_path=f"/var/lib/kubelet/pods/0123456789abcdef/volumes/{number}",
                )
                for number in range(MOUNTS)
            ),
            annotations={f"io.kubernetes.container.{number}": "value" for number in range(8)},
            linux=cri.LinuxContainerConfig(
                resources=cri.LinuxContainerResources(cpu_shares=1024, memory_limit_in_bytes=2**30)
            ),
        ),
        sandbox_config=cri.PodSandboxConfig(
            metadata=cri.PodSandboxMetadata(name="pod", uid="uid", namespace="default"),
            labels={"app": "bench"},
        ),
    )
