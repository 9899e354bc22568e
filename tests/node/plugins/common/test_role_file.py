"""The file of roles: what it means, and what it says when it is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.role_file import BadRoles, parse, read
from dovetail.node.plugins.common.roles import (
    AdjusterRule,
    CpuPool,
    CpuRule,
    MemoryRule,
    NicFacts,
    NicRule,
    PodDescription,
    PodRole,
    ReservedResources,
    RoleMatch,
    RoleTable,
)
from dovetail.node.plugins.cpu.assign import CpuPolicyOption
from dovetail.node.topology import synthetic
from tests.support.paths import ROOT

MACHINE = synthetic(sockets=2, cores=4, threads=2)
"""0-7 and 8-15."""

EXAMPLE = ROOT / "packaging" / "roles.toml"
PAGE = ROOT / "docs" / "node-roles.md"


def test_the_example_that_is_shipped_can_be_used() -> None:
    book = read(EXAMPLE, synthetic())
    assert "online" in book.pools
    assert book.roles


def test_values() -> None:
    book = parse(
        """
        [reserved]
        cpus = "0-1,8-9"
        memory = { 0 = "500Mi", 1 = 1000 }
        [pools.online]
        size = 4
        [pools.fixed]
        cpus = "6-7"
        """,
        MACHINE,
    )
    assert book.reserved.cpus == CpuSet([0, 1, 8, 9])
    assert book.reserved.memory == {0: 500 * 2**20, 1: 1000}
    assert book.pools["online"].size == 4
    assert book.pools["fixed"].cpus == CpuSet([6, 7])


class TestMatching:
    book = parse(
        """
        [roles.online]
        [roles.batch]
        matches = { roles = ["ETL", "video"], namespaces = ["etl"] }
        [roles.pinned]
        matches = { qos_classes = ["Guaranteed"], labels = { pin = "yes" } }
        """,
        MACHINE,
    )

    @pytest.mark.parametrize(
        ("pod", "name"),
        [
            (PodDescription(role="online"), "online"),
            (PodDescription(role="ETL", namespace="etl"), "batch"),
            (PodDescription(role="ETL", namespace="other"), ""),
            (PodDescription(role="batch"), ""),
            (PodDescription(qos_class="Guaranteed", labels={"pin": "yes", "a": "b"}), "pinned"),
            (PodDescription(qos_class="Guaranteed"), ""),
            (PodDescription(), ""),
        ],
    )
    def test_the_first_role_that_matches(self, pod: PodDescription, name: str) -> None:
        assert self.book.role(pod).name == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[pools", "roles: Expected ']' at the end of a table declaration (at end of document)"),
        ("[pool.a]", "roles, line 1: pool: there is no such table; there are pools, roles, "),
        ("pools = 3", "roles, line 1: pools: is 3, not a table [pools]"),
        ("[pools.a]\n", 'roles, line 1: pools.a: needs either cpus = "0-3" or size = 4'),
        ("[pools.a]\nsize = 2\ncpus = '3'", "line 1: pools.a: needs either"),
        ("[pools.a]\nsize = '2'", "line 2: pools.a.size: Expected `int | null`, got `str`"),
        (
            "[pools.a]\nsise = 2",
            "line 2: pools.a.sise: there is no such key; there are cpus, size, ",
        ),
        ("[pools.a]\n\nmin = 3\nsize = 2", "line 1: pools.a: size is 2, below min, which is 3"),
        ("[pools.a]\nmax = 3\nsize = 4", "pools.a: size is 4, above max, which is 3"),
        ("[pools.a]\nmin = 0\nsize = 4", "min is 0; containers cannot run on no CPU"),
        ("[pools.a]\ncpus = '3-x'", "line 2: pools.a.cpus: '3-x' is no CPU, nor a range of CPUs"),
        ("[pools.a]\ncpus = 3", 'line 2: pools.a.cpus: 3 is no list of CPUs such as "0-3,8"'),
        ("[pools.a]\ncpus = '14-17'", "line 2: pools.a.cpus: CPUs 16-17 are not online"),
        ("[pools.a]\ncpus = '3'\nramp = 1", "min, max and ramp are for pools with a size"),
        (
            "[reserved]\ncpus = '0-1'\n[pools.a]\ncpus = '1-2'",
            "line 4: pools.a.cpus: CPUs 1 are reserved or in another pool already",
        ),
        (
            "[pools.a]\nsize = 9\n[pools.b]\nsize = 9",
            "pools: their sizes add up to 18 CPUs; 16 are",
        ),
        ("[pools.shared]\nsize = 2", "pools.shared: shared is what no pool has"),
        (
            "[pools.a]\nsize = 2\n[roles.r]\ncpu = { pool = 'b' }",
            "line 4: roles.r.cpu.pool: there is no pool 'b'; there are shared, a",
        ),
        ("[roles.r]\nname = 'x'", "line 2: roles.r.name: the name is that of the table"),
        (
            "[roles.r]\nanti_affinity = ['x']",
            "line 2: roles.r.anti_affinity: there is no role 'x'; there are r",
        ),
        (
            "[roles.r.cpu]\nexclusive = true\noptions = ['full']",
            "line 3: roles.r.cpu.options: Invalid enum value 'full'; there are full-pcpus-only, ",
        ),
        (
            "[roles.r.cpu]\nnuma = 'two'",
            "roles.r.cpu.numa: Invalid enum value 'two'; there are any, s",
        ),
        (
            "[roles.r.cpu]\noptions = ['full-pcpus-only', 'distribute-cpus-across-cores']",
            "line 2: roles.r.cpu.options: distribute-cpus-across-cores and full-pcpus-only exclude",
        ),
        (
            "[reserved]\nmemory = { 0 = 'x' }",
            "line 2: reserved.memory.0: 'x' is no quantity",
        ),
        (
            "[reserved]\nmemory = { 0 = 1.5 }",
            "line 2: reserved.memory.0: 1.5 is no amount of bytes such as 500Mi or 2G",
        ),
        (
            "[reserved]\nmemory = { 0 = '100m' }",
            "line 2: reserved.memory.0: '100m' is no whole number of bytes",
        ),
        (
            "[reserved]\nmemory = { 0 = -1 }",
            "line 2: reserved.memory.0: -1 is no whole number of bytes",
        ),
        (
            "[reserved]\nmemory = { 7 = '1Gi' }",
            "reserved.memory.7: there is no NUMA node 7; there are",
        ),
        ("[reserved]\nmemory = { 0 = '1Ti' }", "is 1099511627776, but node 0 has 68719476736"),
        ("[reserved]\ncpus = '99'", "line 2: reserved.cpus: CPUs 99 are not online"),
        ("[nics.eth0]\nnuma = 5", "line 2: nics.eth0.numa: there is no NUMA node 5; there are 0-1"),
        (
            "[adjuster]\npool = 'a'\ndonor = 'b'",
            "line 2: adjuster.pool: 'a' is no pool that has a size",
        ),
        ("[adjuster]\npool = 'a'", "adjuster: Object missing required field `donor`"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(BadRoles) as caught:
        parse(text, MACHINE)
    assert message in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadRoles, match=r"missing\.toml: .*No such file"):
        read(tmp_path / "missing.toml", MACHINE)


TABLES = (
    CpuPool,
    RoleMatch,
    CpuRule,
    MemoryRule,
    NicRule,
    PodRole,
    ReservedResources,
    NicFacts,
    AdjusterRule,
)


@pytest.mark.parametrize("table", TABLES)
def test_every_key_is_in_the_reference(table: type[RoleTable]) -> None:
    words = set(re.findall(r"[\w.]+", "\n".join(re.findall("`([^`]+)`", PAGE.read_text("utf-8")))))
    known = {key for word in words for key in word.split(".")}
    assert {*table.__struct_fields__} - {"name"} <= known


def test_every_option_is_in_the_reference() -> None:
    assert [each for each in CpuPolicyOption if f"`{each}`" not in PAGE.read_text("utf-8")] == []
