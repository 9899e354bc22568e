"""Kubernetes and Helm for the tests: built once, from source, into a cache outside the tree.

`python -m tests.support.kube.assets` builds what is missing and says what it does. Each program is
put in its place when it is whole, so a build that was broken off goes on where it was. The
versions are those of the go.mod files in modules/; a new version gets a new place.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

MODULES = Path(__file__).with_name("modules")

GIVEN = ("KUBE_ASSETS", "KUBEBUILDER_ASSETS")
"""Environment variables that name a directory with programs that are there already."""


class Program(msgspec.Struct, frozen=True):
    name: str
    module: str
    """The directory in modules/ whose go.mod builds it."""
    package: str
    is_tool: bool = False
    """No part of a cluster; it has a place of its own, so that neither is built for the other."""


PROGRAMS = (
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    Program("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Program("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    Program(
        "kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"
    ),
    Program("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    Program("kubelet", "kubernetes", "k8s.io/kubernetes/cmd/kubelet"),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    Program("helm", "helm", "helm.sh/helm/v4/cmd/helm", is_tool=True),
)


class BuildError(Exception):
    """A program could not be built."""


def find(name: str) -> Path | None:
    """The program, if it is there."""
    given = [Path(os.environ[each]) for each in GIVEN if os.environ.get(each)]
    places = given or [_place(program) for program in PROGRAMS if program.name == name]
    return next((place / name for place in places if (place / name).is_file()), None)


def missing() -> list[str]:
    """Of a cluster's programs."""
    return [each.name for each in PROGRAMS if not each.is_tool and find(each.name) is None]


def cache() -> Path:
    """The place of a cluster's programs."""
    modules = sorted({program.module for program in PROGRAMS if not program.is_tool})
    return _caches() / "kube" / f"{version()}-{_fingerprint(modules)}"


def _place(program: Program) -> Path:
    if program.is_tool:
        return _caches() / program.name / _fingerprint([program.module])
    return cache()


def _caches() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dovetail"


def version() -> str:
    found = re.search(r"k8s\.io/kubernetes (v[\d.]+)", _text("kubernetes", "go.mod"))
    assert found, "modules/kubernetes/go.mod names the version"
    return found[1]


def build() -> None:
    """Whatever is missing; another process that builds the same is waited for."""
    place = cache()
    place.mkdir(parents=True, exist_ok=True)
    with (place / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for number, program in enumerate(PROGRAMS, 1):
            if (_place(program) / program.name).is_file():
                continue
            print(f"[{number}/{len(PROGRAMS)}] building {program.name} ...", flush=True)
            started = time.monotonic()
            _build(program, _place(program))
            print(f"      {time.monotonic() - started:.0f} s", flush=True)


def _build(program: Program, place: Path) -> None:
    if shutil.which("go") is None:
        raise BuildError(f"{program.name} is built with Go, which is not on the PATH")
    place.mkdir(parents=True, exist_ok=True)
    unfinished = place / f".{program.name}.unfinished"
    flags = ["-trimpath", "-ldflags", _link_flags(), "-o", str(unfinished)]
    done = subprocess.run(
        ["go", "build", *flags, program.package],
        cwd=MODULES / program.module,
        env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildError(f"{program.package} did not build:\n{done.stderr.strip()[-2000:]}")
    unfinished.rename(place / program.name)


def _link_flags() -> str:
    """The programs tell each other their version; a build from modules would not know it."""
    major, minor, _ = version().removeprefix("v").split(".")
    told = {"gitVersion": version(), "gitMajor": major, "gitMinor": minor}
    flags = (f"-X k8s.io/component-base/version.{key}={value}" for key, value in told.items())
    return " ".join(["-s -w", *flags])


def _fingerprint(modules: Sequence[str]) -> str:
    """Of everything that decides what is built from them."""
    texts = [_text(name, file) for name in modules for file in ("go.mod", "go.sum")]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:8]


def _text(module: str, file: str) -> str:
    return (MODULES / module / file).read_text()


def main() -> int:
    if any(os.environ.get(each) for each in GIVEN):
        lacking = missing()
        print(f"missing there: {', '.join(lacking)}" if lacking else "everything is there")
        return 1 if lacking else 0
    try:
        build()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Kubernetes {version()} for the tests: {cache()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
