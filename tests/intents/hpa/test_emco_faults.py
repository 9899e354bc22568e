"""Each fault that was found in EMCO's placement algorithm, as what it must not be here."""

from __future__ import annotations

from msgspec.structs import replace

from dovetail.intents.fleet import ClusterHealth
from tests.intents.hpa.building import (
    Asked,
    app,
    cluster,
    consumer,
    label,
    needing,
    needs,
    node,
    pod,
    workload,
)

GPU, QAT = "nvidia.com/gpu", "intel.com/qat"


def test_fault_a_optional_requirements_are_no_filter_and_weights_count() -> None:
    wanting = needing("a", needs("cpu", 1), needs(GPU, 1, optional=9), needs(QAT, 1, optional=2))
    asked = Asked(
        [wanting],
        cluster("both", node("n1", more={GPU: 1, QAT: 1})),
        cluster("gpu", node("n1", more={GPU: 1})),
        cluster("none", node("n1")),
    )
    assert asked.clusters("a") == "both gpu none"
    assert [asked.score("a", each) for each in ("both", "gpu", "none")] == [11, 9, 0]


def test_fault_b_a_cluster_that_fails_one_resource_is_out() -> None:
    """Even if another cluster passes all of them."""
    wanting = needing("a", needs("cpu", 2), needs(GPU, 1))
    asked = Asked(
        [wanting],
        cluster("with", node("n1", more={GPU: 1})),
        cluster("without", node("n1")),
    )
    assert asked.clusters("a") == "with"
    assert asked.words("a", "without") == "nvidia.com/gpu: need 1, none"


def test_fault_c_microservices_need_not_share_a_node() -> None:
    trainer, packer = workload("trainer"), workload("packer")
    both = app(
        "a",
        trainer,
        packer,
        consumers=[consumer(trainer, needs(GPU, 1)), consumer(packer, needs(QAT, 1))],
    )
    asked = Asked(
        [both],
        cluster(
            "c1",
            node("n1", more={GPU: 1}),
            node("n2", more={QAT: 1}),
        ),
    )
    assert asked.nodes("c1", "a") == {"trainer": {"n1": 1}, "packer": {"n2": 1}}


def test_fault_d_all_resources_of_a_pod_come_from_one_node() -> None:
    wanting = needing("a", needs("cpu", 4), needs("memory", 8 * 10**9))
    asked = Asked(
        [wanting],
        cluster("c1", node("n1", cpu=8, memory="4G"), node("n2", cpu=2, memory="16G")),
    )
    assert asked.clusters("a") == ""
    assert asked.words("a", "c1") == "cpu+memory: no node has 4 cpu and 8G memory free at once"


def test_fault_e_memory_is_used_up() -> None:
    wanting = needing("a", needs("memory", 3 * 10**9), replicas=3)
    asked = Asked(
        [wanting],
        cluster("two", node("n1", memory="8G")),
        cluster("three", node("n1", memory="9G")),
    )
    assert asked.clusters("a") == "three"
    assert asked.words("a", "two") == "memory: need 9G in all, free 8G"


def test_fault_f_what_is_tried_leaves_no_trace() -> None:
    """Nodes are as before after any number of questions that failed."""
    small, large = needing("small", needs("cpu", 3)), needing("large", needs("cpu", 5))
    there = cluster("c1", node("n1", cpu=4), node("n2", cpu=4))
    asked = Asked([large, small], there)
    assert asked.clusters("large") == ""
    assert asked.clusters("small") == "c1"
    for _ in range(3):
        assert asked.joint("c1", "large", "small") is None
        assert asked.joint("c1", "small") == 0
    assert asked.answer == Asked([large, small], there).answer


def test_fault_g_apps_of_a_group_contend() -> None:
    first, second = needing("first", needs("cpu", 3)), needing("second", needs("cpu", 2))
    asked = Asked([first, second], cluster("c1", node("n1", cpu=4)))
    assert asked.sets("c1") == ["first", "second"]
    assert asked.why("c1") == "first+second: cpu"


def test_fault_g_what_others_were_promised_is_taken() -> None:
    """Held in the ledger by a claim whose pods are not there yet."""
    wanting = needing("a", needs(GPU, 1))
    free = node("n1", more={GPU: 1})
    asked = Asked([wanting], cluster("c1", replace(free, held={GPU: 1})), cluster("c2", free))
    assert asked.clusters("a") == "c2"


def test_fault_h_consumers_without_requirements_ask_for_nothing() -> None:
    plain = workload("plain", requests={"cpu": 1})
    asked = Asked([app("a", plain, consumers=[consumer(plain)])], cluster("c1", node("n1")))
    assert asked.clusters("a") == "c1"


def test_fault_i_a_cluster_that_cannot_be_read_is_named() -> None:
    asked = Asked(
        [needing("a", needs("cpu", 1))],
        cluster("c1", node("n1"), state=ClusterHealth.AWAY, why="certificate has expired"),
        cluster("c2", node("n1"), state=ClusterHealth.UNKNOWN),
        cluster("c3", node("n1"), state=ClusterHealth.STALE, why="connection refused"),
        cluster("c4", node("n1", cpu="many")),
    )
    assert asked.clusters("a") == "c3"
    assert asked.words("a", "c1") == "the cluster does not answer: certificate has expired"
    assert asked.token("a", "c2") == "away"
    assert "'many' is no quantity" in asked.words("a", "c4")


# -- what else its algorithm leaves out


def test_fractions_of_a_cpu_are_not_rounded_down() -> None:
    """3.9 free CPUs are no 3."""
    busy = [pod("other", "n1", requests={"cpu": "100m"})]
    asked = Asked([needing("a", needs("cpu", "3.9"))], cluster("c1", node("n1", pods=busy)))
    assert asked.clusters("a") == "c1"


def test_cordoned_tainted_and_unready_nodes_are_not_usable() -> None:
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    asked = Asked(
        [needing("a", needs("cpu", 1))],
        cluster("cordoned", node("n1", unschedulable=True)),
        cluster("tainted", node("n1", taints=[taint])),
        cluster("unready", node("n1", is_ready=False)),
        cluster("empty"),
    )
    assert asked.clusters("a") == ""
    assert asked.words("a", "cordoned") == "every node is cordoned"
    assert asked.words("a", "tainted") == "a tolerates the taints of no node"
    assert asked.words("a", "unready") == "no node is ready"
    assert asked.words("a", "empty") == "the cluster has no nodes"


def test_the_number_of_pods_of_a_node_counts() -> None:
    small = needing("a", needs("cpu", "0.1"), replicas=3)
    asked = Asked(
        [small],
        cluster("c1", node("n1", more={"pods": 2})),
        cluster("c2", node("n1", more={"pods": 3})),
    )
    assert asked.clusters("a") == "c2"


def test_labels_are_read_with_operators() -> None:
    wanting = needing("a", label("cpu.generation", "3", operator="Gt"))
    asked = Asked(
        [wanting],
        cluster("old", node("n1", {"cpu.generation": "3"})),
        cluster("new", node("n1", {"cpu.generation": "4"})),
        cluster("untold", node("n1")),
    )
    assert asked.clusters("a") == "new"
    assert asked.words("a", "old") == "cpu.generation Gt 3: no node has it"
