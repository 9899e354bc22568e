"""The examples of the nested placement specification, in the order of its sections.

Where groups can change places between providers, one line of the specification stands for several
candidates.
"""

from __future__ import annotations

from dovetail.core.request import Group, Request
from tests.engine.conftest import Answer
from tests.engine.forest import SHARING, Forest, grow, node
from tests.engine.spec import (
    ACCEL,
    COMPUTE,
    NETWORK_HOST,
    NIC_AFFINITY,
    NUMA_HOST,
    POLICY_HOST,
    VIF1,
    VIF2,
    VIF_NET1,
    VIF_NET2,
    on_numa,
    same_subtree,
    suffixes,
    taken,
    taking,
    two_pfs,
)

MULTI_ATTACH = frozenset(["COMPUTE_VOLUME_MULTI_ATTACH"])
WINDOWS = frozenset(["CUSTOM_WINDOWS_LICENSED"])
ONE_CPU = Group(suffix="_COMPUTE", resources={"VCPU": 1})


# arbitrary group suffixes


def test_arbitrary_group_suffixes(answer: Answer) -> None:
    names = ["_a", "_A", "_PORT-2f0a1d6e-9c1e-4d0b-8a57-0d6f5d0e4c11", "-" * 64, "1"]
    request = Request(groups=tuple(Group(suffix=name, resources={"VF": 1}) for name in names))
    (only,) = answer(grow(node("nic", VF=5)), request)
    assert only.allocations == taking(nic={"VF": 5})
    assert only.mappings == {(name, frozenset(["nic"])) for name in names}


# same_subtree


def test_same_subtree_fpga_by_numa(answer: Answer) -> None:
    request = Request(groups=(COMPUTE, ACCEL), affinities=(same_subtree(COMPUTE, ACCEL),))
    found = taken(answer(NUMA_HOST, request))
    assert found == {
        on_numa("numa0", "fpga0_0"),
        on_numa("numa1", "fpga1_0"),
        on_numa("numa1", "fpga1_1"),
    }
    assert not found & {
        on_numa("numa0", "fpga1_0"),
        on_numa("numa0", "fpga1_1"),
        on_numa("numa1", "fpga0_0"),
    }


def test_same_subtree_repeated(answer: Answer) -> None:
    """Each grouping is treated independently."""
    other = Group(suffix="_OTHER", resources={"VCPU": 2})
    more = Group(suffix="_MORE", resources={"FPGA": 1})
    request = Request(
        groups=(COMPUTE, ACCEL, other, more),
        affinities=(same_subtree(COMPUTE, ACCEL), same_subtree(other, more)),
    )
    cpus_on_both = {"numa0": {"VCPU": 2, "MEMORY_MB": 512}, "numa1": {"VCPU": 2}}
    memory_on_numa1 = {"numa0": {"VCPU": 2}, "numa1": {"VCPU": 2, "MEMORY_MB": 512}}
    fpgas = [{"fpga0_0": {"FPGA": 1}, fpga: {"FPGA": 1}} for fpga in ("fpga1_0", "fpga1_1")]
    on_one = {"numa1": {"VCPU": 4, "MEMORY_MB": 512}, "fpga1_0": {"FPGA": 1}}
    assert taken(answer(NUMA_HOST, request)) == {
        *(taking(**cpus_on_both, **pair) for pair in fpgas),
        *(taking(**memory_on_numa1, **pair) for pair in fpgas),
        taking(**on_one, fpga1_1={"FPGA": 1}),
    }


def test_same_subtree_is_rooted_at_one_of_the_providers_that_serve(answer: Answer) -> None:
    """Siblings share a parent, but the parent serves none of the groups."""
    request = Request(
        groups=(VIF1, VIF2),
        isolated=suffixes(VIF1, VIF2),
        affinities=(same_subtree(VIF1, VIF2),),
    )
    assert answer(POLICY_HOST, request) == set()


def test_anti_affinity_same_subtree(answer: Answer) -> None:
    """The pairs that affinity rules out, and only those."""
    request = Request(groups=(COMPUTE, ACCEL), affinities=(same_subtree(COMPUTE, apart=(ACCEL,)),))
    assert taken(answer(NUMA_HOST, request)) == {
        on_numa("numa0", "fpga1_0"),
        on_numa("numa0", "fpga1_1"),
        on_numa("numa1", "fpga0_0"),
    }


def test_anti_affinity_of_a_whole_subtree(answer: Answer) -> None:
    """Two functions of one network card, and one that is on no such card."""
    third = Group(suffix="_THIRD", resources={"VF": 1})
    request = Request(
        groups=(VIF_NET1, VIF_NET2, NIC_AFFINITY, third),
        affinities=(same_subtree(VIF_NET1, VIF_NET2, NIC_AFFINITY, apart=(third,)),),
    )
    assert taken(answer(NETWORK_HOST, request)) == {
        two_pfs("pf1_1", "pf1_2") | taking(pf2_1={"VF": 1}),
        two_pfs("pf1_1", "pf1_2") | taking(pf2_2={"VF": 1}),
        two_pfs("pf2_1", "pf2_2") | taking(pf1_1={"VF": 1}),
        two_pfs("pf2_1", "pf2_2") | taking(pf1_2={"VF": 1}),
    }


# resourceless request groups


def test_resourceless_two_vfs_on_one_nic_from_two_networks(answer: Answer) -> None:
    request = Request(
        groups=(VIF_NET1, VIF_NET2, NIC_AFFINITY),
        affinities=(same_subtree(VIF_NET1, VIF_NET2, NIC_AFFINITY),),
    )
    answers = answer(NETWORK_HOST, request)
    assert taken(answers) == {two_pfs("pf1_1", "pf1_2"), two_pfs("pf2_1", "pf2_2")}
    assert not taken(answers) & {two_pfs("pf1_1", "pf2_2"), two_pfs("pf2_1", "pf1_2")}
    assert {dict(found.mappings)["_NIC_AFFINITY"] for found in answers} == {
        frozenset(["nic1"]),
        frozenset(["nic2"]),
    }


def test_resourceless_and_group_policy(answer: Answer) -> None:
    """A provider that is merely there is isolated like any other."""
    forest = grow(node("compute node", node("nic", VF=2, traits=["HW_NIC_ROOT"])))
    none = Request(groups=(VIF1, NIC_AFFINITY), affinities=(same_subtree(VIF1, NIC_AFFINITY),))
    isolate = Request(
        groups=none.groups, affinities=none.affinities, isolated=suffixes(*none.groups)
    )
    assert taken(answer(forest, none)) == {taking(nic={"VF": 1})}
    assert answer(forest, isolate) == set()


def test_resourceless_and_the_unsuffixed_group(answer: Answer) -> None:
    """The unsuffixed group is isolated from nothing."""
    forest = grow(node("compute node", node("nic", VF=2, traits=["HW_NIC_ROOT"])))
    request = Request(
        groups=(Group(resources={"VF": 1}), NIC_AFFINITY),
        affinities=(same_subtree(NIC_AFFINITY),),
        isolated=suffixes(NIC_AFFINITY),
    )
    assert taken(answer(forest, request)) == {taking(nic={"VF": 1})}


# root_required


def hosts_by_trait() -> Forest:
    return grow(
        node("capable", node("capable-numa", VCPU=4), traits=MULTI_ATTACH),
        node("licensed", VCPU=4, traits=MULTI_ATTACH | WINDOWS),
        node("plain", VCPU=4),
        node("odd", node("odd-numa", VCPU=4, traits=MULTI_ATTACH)),
    )


def givers(answer: Answer, forest: Forest, request: Request) -> set[str]:
    return {name for found in answer(forest, request) for name, _, _ in found.allocations}


def test_root_required_multi_attach(answer: Answer) -> None:
    """Whether or not the root gives anything, and whatever its children have."""
    request = Request(groups=(ONE_CPU,), root_required=(MULTI_ATTACH,))
    assert givers(answer, hosts_by_trait(), request) == {"capable-numa", "licensed"}


def test_root_required_keeps_licensed_hosts_free(answer: Answer) -> None:
    request = Request(groups=(ONE_CPU,), root_forbidden=WINDOWS)
    assert givers(answer, hosts_by_trait(), request) == {"capable-numa", "plain", "odd-numa"}
    both = Request(groups=(ONE_CPU,), root_required=(MULTI_ATTACH,), root_forbidden=WINDOWS)
    assert givers(answer, hosts_by_trait(), both) == {"capable-numa"}


def test_root_required_is_on_the_non_sharing_tree(answer: Answer) -> None:
    forest = grow(
        node("capable", VCPU=4, traits=MULTI_ATTACH, aggregates=["rack"]),
        node("plain", VCPU=4, aggregates=["rack"]),
        node("share", DISK_GB=9, traits=[SHARING], aggregates=["rack"]),
    )
    request = Request(
        groups=(Group(resources={"VCPU": 1, "DISK_GB": 1}),), root_required=(MULTI_ATTACH,)
    )
    assert taken(answer(forest, request)) == {taking(capable={"VCPU": 1}, share={"DISK_GB": 1})}


def test_traits_do_not_flow_down(answer: Answer) -> None:
    """A group asks the provider that serves it, not that provider's ancestors."""
    group = Group(suffix="_COMPUTE", resources={"VCPU": 1}, required=(MULTI_ATTACH,))
    request = Request(groups=(group,))
    assert givers(answer, hosts_by_trait(), request) == {"licensed", "odd-numa"}


# root_member_of


def hosts_by_zone() -> Forest:
    return grow(
        node("east", node("east-numa", VCPU=4), aggregates=["zone-east", "rack-1"]),
        node("west", VCPU=4, aggregates=["zone-west", "rack-1"]),
        node("north", VCPU=4, aggregates=["zone-north"]),
        node("odd", node("odd-numa", VCPU=4, aggregates=["zone-east", "rack-1"])),
    )


def test_root_member_of_a_zone(answer: Answer) -> None:
    request = Request(groups=(ONE_CPU,), root_member_of=(frozenset(["zone-east"]),))
    assert givers(answer, hosts_by_zone(), request) == {"east-numa"}


def test_root_member_of_any_in_a_list(answer: Answer) -> None:
    zones = frozenset(["zone-east", "zone-north"])
    request = Request(groups=(ONE_CPU,), root_member_of=(zones,))
    assert givers(answer, hosts_by_zone(), request) == {"east-numa", "north"}


def test_root_member_of_repeated(answer: Answer) -> None:
    zones = frozenset(["zone-east", "zone-north", "zone-west"])
    request = Request(groups=(ONE_CPU,), root_member_of=(zones, frozenset(["rack-1"])))
    assert givers(answer, hosts_by_zone(), request) == {"east-numa", "west"}


def test_root_not_member_of_a_zone(answer: Answer) -> None:
    request = Request(groups=(ONE_CPU,), root_not_member_of=frozenset(["rack-1"]))
    assert givers(answer, hosts_by_zone(), request) == {"north", "odd-numa"}


# granular isolation

VIF3 = Group(suffix="_VIF3", resources={"VF": 1})


def split(first: int, second: int) -> frozenset[tuple[str, str, int]]:
    """So many functions of the one, so many of the other."""
    counts = {"pf1_1": first, "pf1_2": second}
    return taking(**{name: {"VF": count} for name, count in counts.items() if count})


def test_granular_isolation_of_one_group(answer: Answer) -> None:
    """The provider of an isolated group satisfies only that group; others may share."""
    request = Request(groups=(VIF1, VIF2, VIF3), isolated=suffixes(VIF1))
    answers = answer(POLICY_HOST, request)
    assert taken(answers) == {split(1, 2), split(2, 1)}
    assert len(answers) == 2


def test_granular_isolation_of_none_and_of_all(answer: Answer) -> None:
    groups = (VIF1, VIF2, VIF3)
    every_split = {split(3, 0), split(2, 1), split(1, 2), split(0, 3)}
    assert taken(answer(POLICY_HOST, Request(groups=groups))) == every_split
    assert answer(POLICY_HOST, Request(groups=groups, isolated=suffixes(*groups))) == set()


def test_granular_isolation_of_a_resourceless_group(answer: Answer) -> None:
    forest = grow(node("compute node", node("nic", node("pf", VF=4), VF=4, traits=["HW_NIC_ROOT"])))
    request = Request(
        groups=(VIF1, VIF2, NIC_AFFINITY),
        affinities=(same_subtree(VIF1, VIF2, NIC_AFFINITY),),
        isolated=suffixes(NIC_AFFINITY),
    )
    assert taken(answer(forest, request)) == {taking(pf={"VF": 2})}


# group_policy + same_subtree


def two_vfs_of_one_nic(policy: str) -> Request:
    groups = (VIF1, VIF2, NIC_AFFINITY)
    return Request(
        groups=groups,
        affinities=(same_subtree(*groups),),
        isolated=suffixes(*groups) if policy == "isolate" else frozenset(),
    )


def test_group_policy_isolate_and_same_subtree(answer: Answer) -> None:
    answers = answer(POLICY_HOST, two_vfs_of_one_nic("isolate"))
    assert taken(answers) == {split(1, 1)}
    assert len(answers) == 2, "which group is on which function is told by the mappings"


def test_group_policy_none_and_same_subtree(answer: Answer) -> None:
    answers = answer(POLICY_HOST, two_vfs_of_one_nic("none"))
    assert taken(answers) == {split(1, 1), split(2, 0), split(0, 2)}
    assert len(answers) == 4
