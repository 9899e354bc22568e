"""`helm template`, run on a chart that nobody vouches for. The renderer calls it.

The process gets nothing of ours: an environment of its own without credentials, a home that is
thrown away, proxies that lead nowhere, and no kubeconfig. It has limits of time, memory and output;
whatever it started ends with it. Schemas of values are not applied: they may point at files and
addresses, which helm would open. What it says when it fails is told, less what looks like a secret
among the values.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from dovetail.core.errors import Malformed
from dovetail.intents.manifests.reading import MOST_BYTES

NOWHERE = "http://127.0.0.1:9"
"""The discard port, where nothing listens."""
LONGEST_ERROR = 2000
SHORTEST_SECRET = 4
SECRET_KEY = re.compile(r"pass|secret|token|credential|private|api.?key|auth|cert", re.IGNORECASE)
HIDDEN = "(hidden)"
CHUNK_BYTES = 2**16
OUT_OF_MEMORY = (b"out of memory", b"cannot allocate memory")
"""How a Go program says it, before it tells where it was."""


class HelmLimits(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float = 30.0
    memory_bytes: int = 3 * 2**30
    """Of address space: a Go program reserves much more than it uses."""
    output_bytes: int = MOST_BYTES
    at_once: int = 2


class HelmMissing(Malformed):
    """A chart cannot be rendered on this server."""


class HelmFailed(Malformed):
    """helm did not render the chart."""


class ChartRun(msgspec.Struct, frozen=True, kw_only=True):
    """What helm is asked for."""

    chart: Path
    release: str
    namespace: str
    values: Sequence[Path] = ()
    """Files, later ones win."""
    overrides: Sequence[str] = ()
    """`key=value`, which win over all files."""
    secrets: Sequence[str] = ()
    """Texts that no error may show."""


class Helm:
    """`program`: by setting; None: the one on the PATH."""

    def __init__(self, program: str | None = None, limits: HelmLimits | None = None) -> None:
        self._program, self._limits = program, limits or HelmLimits()
        self._turns = asyncio.Semaphore(self._limits.at_once)

    async def template(self, run: ChartRun, home: Path) -> bytes:
        """What it prints. `home`: a directory that is empty and thrown away afterwards. Raises
        HelmMissing and HelmFailed."""
        words = [self._found(), "template", *_flags(run), "--", run.release, str(run.chart)]
        if any("\0" in each for each in words):
            raise HelmFailed("a value with a NUL character cannot be handed to helm")
        async with self._turns:
            process = await self._start(words, home)
            try:
                async with asyncio.timeout(self._limits.seconds):
                    output, errors = await self._communicate(process)
            except TimeoutError:
                raise HelmFailed(
                    f"helm did not end within {self._limits.seconds:g} s, and was stopped"
                ) from None
            finally:
                await _end(process)
        if process.returncode:
            raise HelmFailed(self._complaint(process.returncode, errors, run))
        return output

    def _complaint(self, status: int, errors: bytes, run: ChartRun) -> str:
        if any(sign in errors for sign in OUT_OF_MEMORY):
            return (
                f"helm needs more than {self._limits.memory_bytes} bytes of memory for this chart"
            )
        return _shown(errors.decode(errors="replace"), run) or f"helm ended with {status}"

    def _found(self) -> str:
        found = shutil.which(self._program or "helm")
        if found is None:
            where = (
                f"{self._program} is no program"
                if self._program
                else "there is no helm on the server's PATH"
            )
            raise HelmMissing(
                f"this is a Helm chart, and {where}: install helm 3.16 or newer, name it by the"
                " setting intents.helm, or upload the manifests that `helm template` prints"
            )
        return str(Path(found).absolute())

    async def _start(self, words: Sequence[str], home: Path) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                cwd=home,
                env=_environment(home),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
            )
        except OSError as error:
            raise HelmMissing(f"{words[0]} cannot be run: {error.strerror}") from error
        most = self._limits.memory_bytes
        with suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_AS, (most, most))
            resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        return process

    async def _communicate(self, process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.create_task(_drained(process.stderr))
        try:
            output = await _whole(process.stdout, self._limits.output_bytes)
            await process.wait()
            return output, await errors
        finally:
            errors.cancel()
            with suppress(asyncio.CancelledError):
                await errors


def _flags(run: ChartRun) -> Iterator[str]:
    yield from ("--include-crds", "--skip-tests", "--skip-schema-validation")
    yield f"--namespace={run.namespace}"
    yield from (f"--values={each}" for each in run.values)
    yield from (f"--set={each}" for each in run.overrides)


def _environment(home: Path) -> dict[str, str]:
    directories = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS")
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    return {
        "HOME": str(home),
        "TMPDIR": str(home),
        "PATH": str(home),
        "KUBECONFIG": str(home / "none"),
        **dict.fromkeys(directories, str(home)),
        **dict.fromkeys(proxies, NOWHERE),
    }


async def _whole(stream: asyncio.StreamReader, most: int) -> bytes:
    found = bytearray()
    while chunk := await stream.read(CHUNK_BYTES):
        found += chunk
        if len(found) > most:
            raise HelmFailed(f"helm prints more than {most} bytes for this chart")
    return bytes(found)


async def _drained(stream: asyncio.StreamReader) -> bytes:
    """Of errors the beginning is kept; the rest is read, so that helm does not wait."""
    found = b""
    while chunk := await stream.read(CHUNK_BYTES):
        if len(found) < CHUNK_BYTES:
            found += chunk
    return found


async def _end(process: asyncio.subprocess.Process) -> None:
    """With all that it started: they are a session of their own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _shown(errors: str, run: ChartRun) -> str:
    """Without our directories, without secrets, on one line."""
    for each in sorted(set(run.secrets), key=len, reverse=True):
        errors = errors.replace(each, HIDDEN)
    errors = errors.replace(f"{run.chart.parent}/", "")
    return " ".join(errors.split())[:LONGEST_ERROR]


def secrets_among(values: Any, key: str = "") -> Iterator[str]:
    """Texts below keys whose names sound like it: `adminPassword`, `tls.privateKey`."""
    if isinstance(values, Mapping):
        for name, each in values.items():
            yield from secrets_among(each, str(name) if not SECRET_KEY.search(key) else key)
    elif isinstance(values, list):
        for each in values:
            yield from secrets_among(each, key)
    elif is_secret(key, values):
        yield str(values)


def is_secret(key: str, value: Any) -> bool:
    """Text or a number; what is shorter would be found everywhere."""
    is_text = isinstance(value, str | int) and not isinstance(value, bool)
    return is_text and len(str(value)) >= SHORTEST_SECRET and bool(SECRET_KEY.search(key))
