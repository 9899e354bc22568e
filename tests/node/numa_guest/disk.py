"""What the guest boots from: Debian's kernel, busybox, containerd, this Python and our code."""

from __future__ import annotations

import gzip
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import grpc

from tests.support.paths import ROOT

PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "runc")
LIBRARIES = (
    *("grpc", "google", "hpack", "msgspec", "structlog", "prometheus_client"),
    "typing_extensions.py",
)
UNUSED = shutil.ignore_patterns(
    "test", "tests", "site-packages", "__pycache__", "tkinter", "idlelib", "ensurepip", "*.a"
)
VIRTIO = ("virtio", "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci")
MODULES = (*VIRTIO, "virtio_blk", "overlay")
MEGABYTES = 900

FIRST = f"""\
#!/bin/sh
/bin/busybox mount -t devtmpfs dev /dev
for m in {" ".join(MODULES)}; do /bin/busybox insmod /modules/$m.ko; done
until [ -b /dev/vda ]; do /bin/busybox sleep 0.1; done
/bin/busybox mount -t ext4 /dev/vda /disk
exec /bin/busybox switch_root /disk /sbin/init
"""

INIT = """\
#!/bin/sh
export PATH=/bin:/usr/bin HOME=/root PYTHONPATH=/opt/t PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
python3 -m tests.node.numa_guest.inside 2>&1
poweroff -f
"""


def build(work: Path) -> Path:
    """Disk and first ram disk, there; the kernel's path is returned."""
    kernel = _kernel(work)
    modules = next((kernel / "lib/modules").iterdir())
    for name in ("root", "first"):
        shutil.rmtree(work / name, ignore_errors=True)
    _first(work / "first", modules)
    _packed(work / "first", work / "initrd.gz")
    _root(work / "root")
    (work / "disk.img").unlink(missing_ok=True)
    _run("mke2fs", "-q", "-t", "ext4", "-d", work / "root", work / "disk.img", f"{MEGABYTES}M")
    shutil.rmtree(work / "root")
    return next((kernel / "boot").glob("vmlinuz-*"))


def _kernel(work: Path) -> Path:
    """Debian's for virtual machines, unpacked and not installed."""
    target = work / "kernel"
    if not target.exists():
        depends = _run("apt-cache", "depends", "linux-image-cloud-amd64").split()
        package = next(each for each in depends if each.startswith("linux-image-6"))
        _run("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package, at=work)
        (file,) = work.glob(f"{package}_*.deb")
        _run("dpkg", "-x", file, target)
        file.unlink()
    return target


def _first(root: Path, modules: Path) -> None:
    for name in ("bin", "dev", "disk", "modules"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    (root / "bin/sh").symlink_to("busybox")
    for name in MODULES:
        (found,) = modules.rglob(f"{name}.ko*")
        data = found.read_bytes()
        plain = lzma.decompress(data) if found.suffix == ".xz" else data
        (root / f"modules/{name}.ko").write_bytes(plain)
    _program(root / "init", FIRST)


def _packed(root: Path, target: Path) -> None:
    names = "\n".join(str(each.relative_to(root)) for each in sorted(root.rglob("*")))
    command = ["busybox", "cpio", "-o", "-H", "newc"]
    done = subprocess.run(command, input=names.encode(), cwd=root, capture_output=True, check=True)
    target.write_bytes(gzip.compress(done.stdout, 1))


def _root(root: Path) -> None:
    for name in ("proc", "sys", "dev", "tmp", "run", "etc", "root", "sbin", "bin", "usr/bin"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    for applet in _run("/bin/busybox", "--list").split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    for name in PROGRAMS:
        shutil.copy(str(shutil.which(name)), root / "usr/bin")
    _python(root)
    put_ours(root / "opt/t")
    _shared_libraries(root)
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "etc/resolv.conf").write_text("")
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    _program(root / "sbin/init", INIT)


def _python(root: Path) -> None:
    """At the paths that it has here."""
    program = Path(sys.executable).resolve()
    library = Path(os.__file__).parent
    for source in (program, *Path(sys.base_prefix, "lib").glob("libpython3*")):
        _copied(source, root)
    shutil.copytree(library, _below(root, library), ignore=UNUSED)
    (root / "usr/bin/python3").symlink_to(program)


def put_ours(target: Path) -> None:
    site = Path(grpc.__file__).parents[1]
    for name in LIBRARIES:
        _copy_tree(site / name, target / name)
    _copy_tree(ROOT / "src/dovetail", target / "dovetail")
    for tests in ("tests/node", "tests/support"):
        _copy_tree(ROOT / tests, target / tests)
    shutil.copy(ROOT / "tests/__init__.py", target / "tests")


def _shared_libraries(root: Path) -> None:
    found: set[str] = set()
    for each in root.rglob("*"):
        if each.is_file() and not each.is_symlink() and _is_program(each):
            done = subprocess.run(["ldd", each], capture_output=True, text=True, check=False)
            found |= {
                word for word in done.stdout.split() if word.startswith("/") and ".so" in word
            }
    for name in sorted(found):
        if not _below(root, Path(name)).exists():
            _copied(Path(name), root)


def _is_program(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _copied(source: Path, root: Path) -> None:
    target = _below(root, source)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def _below(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _copy_tree(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _run(*command: str | Path, at: Path | None = None) -> str:
    done = subprocess.run(command, cwd=at, capture_output=True, text=True, check=False)
    if done.returncode:
        words: Iterable[str] = map(str, command)
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
