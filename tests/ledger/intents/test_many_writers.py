"""A mirror, deployments and sweeps at the same time: what is left is as if they had taken turns."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from dovetail.core.errors import Refused
from dovetail.intents.deployment import AppOnCluster, PlannedWorkload
from dovetail.ledger import Ledger
from dovetail.ledger.bulk import audit
from dovetail.ledger.intents import charges, node_rows, nodes
from dovetail.ledger.intents.charges import NodeGone
from dovetail.ledger.intents.observed import SeenNode
from tests.ledger.intents.test_nodes import held
from tests.support.intents.seen import node, pod, seen

CLUSTER = "p1+c1"
NODES = ("n1", "n2")
TURNS = 60
PLAN = AppOnCluster(
    app="fwall",
    cluster=CLUSTER,
    workloads=(
        PlannedWorkload(
            kind="Deployment",
            name="core",
            count=2,
            amounts={"cpu": 1000, "pods": 1},
            nodes={"n1": 1, "n2": 1},
        ),
    ),
)


def observe(ledger: Ledger, seed: int) -> dict[str, SeenNode]:
    """Nodes come, change and go; those that are there in the end."""
    chance = random.Random(seed)
    there: dict[str, SeenNode] = {}
    for turn in range(TURNS):
        name = chance.choice(NODES)
        if name in there and chance.random() < 0.3:
            del there[name]
            ledger.write(partial(nodes.leave, cluster=CLUSTER, names=[name])).result()
            continue
        pods = [
            pod(f"web-{turn}", name, requests={"cpu": f"{chance.randrange(1, 20)}00m"}),
            pod("core-0", name, deployment="d1", app="fwall", requests={"cpu": "1"}),
        ]
        there[name] = seen(node(name), pods[: chance.randrange(3)])
        ledger.write(partial(nodes.enter, cluster=CLUSTER, seen=[there[name]])).result()
    return there


def deploy(ledger: Ledger) -> bool:
    """Take and give back; whether it holds something in the end."""
    is_held = False
    for turn in range(TURNS):
        if turn % 2:
            ledger.write(partial(charges.release, deployment="d1", app="fwall", cluster=CLUSTER))
            is_held = False
        else:
            take = partial(charges.take, deployment="d1", placements=[PLAN], project="p", user="u")
            try:
                ledger.write(take).result()
                is_held = True
            except (NodeGone, Refused):
                pass
    return is_held


def sweep(ledger: Ledger) -> None:
    for _ in range(TURNS):
        ledger.write(nodes.sweep).result()


def test_many_writers_leave_what_one_after_the_other_would(ledger: Ledger) -> None:
    for seed in range(4):
        with ThreadPoolExecutor(3) as threads:
            observing = threads.submit(observe, ledger, seed)
            deploying = threads.submit(deploy, ledger)
            threads.submit(sweep, ledger).result()
            there, _ = observing.result(), deploying.result()
        ledger.write(partial(charges.release, deployment="d1", app="fwall", cluster=CLUSTER))
        ledger.write(nodes.sweep).result()
        rows = ledger.read(partial(node_rows.of_cluster, cluster=CLUSTER)).result()
        assert sorted(row.name for row in rows) == sorted(there)
        for name, each in there.items():
            used = sum(units for one in each.pods for what, units in one.amounts if what == "cpu")
            assert held(ledger, name).get("CUSTOM_MILLICPU", 0) == used
        faults = ledger.read(audit.examine).result().faults
        assert not [each for each in faults if each.kind != "overcommit"]
        ledger.write(partial(nodes.leave_cluster, cluster=CLUSTER)).result()
