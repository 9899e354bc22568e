"""Schedulers under SIGKILL: killed while their claims are not yet bindings, again and again.

    python -m tests.kube.scheduler.chaos --kills 20 [--racing] [--drivers] [--nodes 20]

Two replicas place pods on a real cluster. As soon as the ledger shows claims of a new batch of
pods, the leader (or, where both decide, one of them) is killed and started again; the API server is
restarted in between; pods come and go. At the end every pod is bound, every device is held by at
most one of them, and the ledger says of each pod what the pod says of itself. Where DRA drivers
have the devices, so do the ResourceClaims there are, and there is none besides.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dovetail.kube.classes.slices import device_name
from dovetail.ledger import Ledger, open_ledger
from dovetail.ledger.devices import held
from tests.kube.scheduler import real
from tests.kube.scheduler.dra.real_claims import claims, slice_object
from tests.support.kube.cluster import Cluster
from tests.support.processes import Process

NAMESPACE = "chaos"
DEVICES = 8
LEASE = "1"
BATCH = 24


class Chaos:
    def __init__(
        self,
        cluster: Cluster,
        database: str,
        *,
        racing: bool,
        drivers: bool = False,
        nodes: int = 10,
        seed: int = 0,
    ) -> None:
        self._cluster = cluster
        self._database = database
        self._racing = racing
        self._drivers = drivers
        self._nodes = nodes
        self._random = random.Random(seed)
        self._made = 0
        election = ["--no-leader-elect"] if racing else ["--lease-seconds", LEASE]
        self._replicas = [
            real.scheduler(cluster, database, f"replica-{name}", *election) for name in "ab"
        ]
        self._ledger: Ledger = open_ledger(database)
        self.unfinished = 0
        """Claims that were no bindings when their scheduler was killed."""

    def run(self, kills: int, restarts: int) -> None:
        with ExitStack() as stack:
            stack.callback(self._ledger.close)
            self._set_up()
            for replica in self._replicas:
                stack.callback(replica.kill)
                replica.start()
            when = {(number + 1) * kills // (restarts + 1) for number in range(restarts)}
            for number in range(kills):
                self._kill_one()
                if number in when:
                    self._cluster.apiserver.restart()
                    self._cluster.await_ready()
                self._delete_some()
            self._settle()

    def _set_up(self) -> None:
        cluster = self._cluster
        real.install(cluster)
        cluster.apply(real.class_object("gpu"))
        names = [f"g{number}" for number in range(DEVICES)]
        if self._drivers:
            cluster.start_resource_claims()
            cluster.add_nodes(self._nodes)
            cluster.apply(*(slice_object(f"node-{at}", *names) for at in range(self._nodes)))
        else:
            cluster.add_nodes(self._nodes, annotations=real.devices(*names))
        cluster.make_namespace(NAMESPACE)

    def _claimed(self) -> set[str]:
        return {each.consumer for each in self._ledger.read(held).result()}

    def _kill_one(self) -> None:
        """While it works on a new batch of pods."""
        before = self._claimed()
        batch = []
        for _ in range(BATCH):
            asked = {"gpu": self._random.choice([1, 1, 2])}
            batch.append(real.pod_object(f"p{self._made}", NAMESPACE, asked))
            self._made += 1
        victim = self._victim()
        making = threading.Thread(target=real.create, args=(self._cluster, batch))
        making.start()
        deadline = time.monotonic() + 60
        while not self._claimed() - before and time.monotonic() < deadline:
            time.sleep(0.001)
        victim.kill()
        making.join()
        unbound = {
            pod["metadata"]["uid"]
            for pod in real.pods(self._cluster, NAMESPACE)
            if not pod["spec"].get("nodeName")
        }
        self.unfinished += len(unbound & self._claimed())
        victim.start()

    def _victim(self) -> Process:
        """The leader, once there is one."""
        if self._racing:
            return self._random.choice(self._replicas)
        found: list[Process] = []

        def is_led() -> bool:
            lease = ("get", "lease", "-n", "default", "dovetail-scheduler", "--ignore-not-found")
            holder = self._cluster.kubectl(*lease, "-o", "jsonpath={.spec.holderIdentity}")
            found[:] = [each for each in self._replicas if f"_{each.pid}_" in holder]
            return bool(found)

        self._cluster.await_that(is_led, "leader", 60)
        return found[0]

    def _delete_some(self) -> None:
        """So many that the rest has room; some of them may not be bound yet."""
        there = [pod["metadata"]["name"] for pod in real.pods(self._cluster, NAMESPACE)]
        room = self._nodes * DEVICES // 2
        gone = self._random.sample(there, max(0, len(there) - room + BATCH))
        if gone:
            self._cluster.kubectl("delete", "pod", "-n", NAMESPACE, "--wait=false", *gone)

    def _settle(self) -> None:
        cluster = self._cluster
        left: list[dict[str, Any]] = []

        def is_settled() -> bool:
            left[:] = real.pods(cluster, NAMESPACE)
            everybody = all(pod["spec"].get("nodeName") for pod in left)
            uids = {pod["metadata"]["uid"] for pod in left}
            return everybody and self._claimed() == uids

        try:
            cluster.await_that(is_settled, "rest", 90)
        except TimeoutError as error:
            unbound = [pod["metadata"]["name"] for pod in left if not pod["spec"].get("nodeName")]
            raise AssertionError(f"pods without a node: {unbound}") from error
        said = real.told_by_pods(cluster, NAMESPACE)
        places = [place for mine in said.values() for place in mine]
        assert len(said) == len(left), "every pod tells its devices"
        assert len(places) == len(set(places)), "no device is told by two"
        assert said == real.told_by_ledger(self._database), "pods and ledger agree"
        if self._drivers:
            wanted = sorted((uid, sorted(name for _, name in mine)) for uid, mine in said.items())
            cluster.await_that(lambda: self._claimed_by_pods() == wanted, "claims as pods say", 120)

    def _claimed_by_pods(self) -> list[tuple[str, list[str]]]:
        """By the pod that owns a ResourceClaim, the devices that it has."""
        found = []
        for each in claims(self._cluster):
            allocation = each.get("status", {}).get("allocation") or {"devices": {"results": []}}
            names = [
                device_name(result["driver"], result["pool"], result["device"])
                for result in allocation["devices"]["results"]
            ]
            found.append((each["metadata"]["ownerReferences"][0]["uid"], sorted(names)))
        return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--restarts", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--racing", action="store_true", help="no election: both decide")
    parser.add_argument("--drivers", action="store_true", help="devices are DRA drivers'")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        with Cluster.running(directory) as cluster:
            cluster.start_controllers()
            database = f"sqlite:///{directory / 'ledger.db'}"
            chaos = Chaos(
                cluster,
                database,
                racing=given.racing,
                drivers=given.drivers,
                nodes=given.nodes,
                seed=given.seed,
            )
            started = time.monotonic()
            chaos.run(given.kills, given.restarts)
            print(
                f"{given.kills} kills, {given.restarts} restarts of the API server,"
                f" {chaos.unfinished} claims found unfinished,"
                f" {time.monotonic() - started:.0f} s: no device held twice, no pod lost"
            )


if __name__ == "__main__":
    main()
