"""The kubelet of a node, unmodified: its configuration, and the process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import msgspec

from tests.support.kube import assets
from tests.support.kube.cluster import Cluster
from tests.support.node.kubelet.merging import merged
from tests.support.node.kubelet.mounts import ROOT
from tests.support.processes import Process

OK = 200


class Place(msgspec.Struct, frozen=True):
    """Where a kubelet is: nobody else has any of it."""

    name: str
    address: str
    port: int
    health_port: int
    cgroup: str
    directory: Path
    """For its files."""

    @property
    def static_pods(self) -> Path:
        return self.directory / "static-pods"

    @property
    def logs(self) -> Path:
        return self.directory / "pod-logs"


class Kubelet(Process):
    def __init__(
        self,
        place: Place,
        cluster: Cluster,
        endpoint: Path,
        settings: Mapping[str, Any],
        *,
        prefix: Sequence[str],
        log: Path,
    ) -> None:
        """`settings` go over those of the tests; `prefix` is how it is started."""
        self.place, self.endpoint = place, endpoint
        for each in (place.static_pods, place.logs, place.directory / "volume-plugins"):
            each.mkdir(parents=True)
        file = place.directory / "kubelet.json"
        file.write_text(json.dumps(merged(configuration(place, cluster, endpoint), settings)))
        user = cluster.user(f"system:node:{place.name}", ("system:nodes",))
        program = assets.find("kubelet")
        assert program, "`make kube` builds it"
        super().__init__(
            [
                *(*prefix, program, "--config", file, "--kubeconfig", user),
                *("--root-dir", ROOT, "--cert-dir", ROOT / "pki"),
                *("--hostname-override", place.name, "--node-ip", place.address),
            ],
            log,
            name="kubelet",
            # Of Go: what it finds in the way of a proxy is not for it.
            environment=dict.fromkeys(_proxies(), ""),
        )

    def start(self) -> None:
        """Until it says that it is well."""
        # It ends at once where there is no runtime.
        self.await_endpoint()
        super().start()
        self.await_ready(self._is_well)

    def await_endpoint(self) -> None:
        if not self.endpoint.exists():
            raise AssertionError(f"nobody serves {self.endpoint}, and a kubelet would end at once")

    def restart(self) -> None:
        self.stop()
        self.start()

    def _is_well(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.place.health_port, timeout=10)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == OK
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


def configuration(place: Place, cluster: Cluster, endpoint: Path) -> dict[str, Any]:
    hosts = (place.name, place.address)
    certificate, key = cluster.authority.issue(f"kubelet-{place.name}", hosts=hosts)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "port": place.port,
        "readOnlyPort": 0,
        "healthzPort": place.health_port,
        "tlsCertFile": str(certificate),
        "tlsPrivateKeyFile": str(key),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(cluster.authority.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{endpoint}",
        "staticPodPath": str(place.static_pods),
        "podLogsDir": str(place.logs),
        "volumePluginDir": str(place.directory / "volume-plugins"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": place.cgroup,
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        # A lower one needs CAP_SYS_RESOURCE.
        "oomScoreAdj": 0,
        # A disk that others fill is no reason to evict pods of a test, or to remove its image.
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        # Files are looked for more often than every 20 s, and nobody waits for nothing.
        "fileCheckFrequency": "1s",
        "nodeStatusUpdateFrequency": "2s",
        "crashLoopBackOff": {"maxContainerRestartPeriod": "2s"},
        "registerWithTaints": [],
        "logging": {"verbosity": 2},
    }


def _proxies() -> list[str]:
    return [name for name in os.environ if name.lower() in {"http_proxy", "https_proxy"}]
