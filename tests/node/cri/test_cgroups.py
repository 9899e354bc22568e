"""Where the kernel's word on a container is found."""

from __future__ import annotations

from pathlib import Path

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.cri import cgroups


def machine(root: Path, mounts: str, cgroup: str, files: dict[str, str]) -> Path:
    """A /proc whose mounts lead below the root."""
    proc = root / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "7").mkdir()
    (proc / "self/mounts").write_text(mounts.replace("ROOT", str(root)))
    (proc / "7/cgroup").write_text(cgroup)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return proc


def test_version_1_with_a_second_controller_and_an_empty_version_2(tmp_path: Path) -> None:
    proc = machine(
        tmp_path,
        "cgroup ROOT/cpu cgroup rw,cpu,cpuacct 0 0\n"
        "cgroup ROOT/cpuset cgroup rw,cpuset,foo 0 0\n"
        "cgroup2 ROOT/unified cgroup2 rw 0 0\n",
        "9:cpuset,foo:/pod/c\n3:cpu,cpuacct:/pod/c\n0::/other\n",
        {"cpuset/pod/c/cpuset.cpus": "0-1\n", "cpuset/pod/c/cpuset.mems": "0\n"},
    )
    assert cgroups.pinning(7, proc) == ContainerSettings(cpus="0-1", mems="0")


def test_version_2(tmp_path: Path) -> None:
    proc = machine(
        tmp_path,
        "cgroup2 ROOT/cg cgroup2 rw 0 0\n",
        "0::/pod/c\n",
        {"cg/pod/c/cpuset.cpus": "2\n", "cg/pod/c/cpuset.mems": "\n"},
    )
    assert cgroups.pinning(7, proc) == ContainerSettings(cpus="2"), "nothing set is nothing said"


def test_process_that_went_or_files_that_are_not_ours_to_read(tmp_path: Path) -> None:
    proc = machine(tmp_path, "cgroup2 ROOT/cg cgroup2 rw 0 0\n", "0::/pod/c\n", {})
    assert cgroups.pinning(7, proc) == ContainerSettings()
    assert cgroups.pinning(8, proc) == ContainerSettings()
