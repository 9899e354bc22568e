"""The renderer: an app's file to its objects, whatever kind of file it is.

`GroupReader` calls it for every app of a group. Plain YAML or JSON, as people or kustomize wrote
it, is read as it is. A chart is rendered by helm, with the profile's values and overrides of files
as EMCO has them:

    manifest.yaml       in the profile's archive
      type:
        values: override_values.yaml          a file of the profile, for helm
        configresource:                       files of the profile put in place of the chart's
          - filepath: deployment.yaml
            chartpath: my-chart/templates/deployment.yaml

Hooks that belong to an installation are objects like others; hooks for tests, upgrades, rollbacks
and deletion are left out.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from dovetail.core.errors import Malformed
from dovetail.intents.group import ManifestObject
from dovetail.intents.manifests.errors import BadManifest
from dovetail.intents.manifests.reading import documents_of, objects_of
from dovetail.intents.manifests.templates import without_nulls
from dovetail.service.intents.reading import AppFiles
from dovetail.service.intents.rendering.archives import (
    BadArchive,
    chart_directory,
    is_archive,
    path_below,
    unpack,
)
from dovetail.service.intents.rendering.helm import ChartRun, Helm, secrets_among

PROFILE_MANIFESTS = ("manifest.yaml", "manifest.yml")
HOOK = "helm.sh/hook"
INSTALL_HOOKS = {"pre-install", "post-install", "crd-install"}
ZIP = b"PK\x03\x04"


class BadProfile(Malformed):
    """A profile that cannot be applied to its app's chart."""


class FileOverride(msgspec.Struct, frozen=True):
    """A file of the profile, and where in the chart it belongs."""

    filepath: str
    chartpath: str


class ProfileTypes(msgspec.Struct, frozen=True):
    values: str = ""
    configresource: list[FileOverride] | None = None


class ProfileManifest(msgspec.Struct, frozen=True):
    """What EMCO's profiles say in their manifest."""

    type: ProfileTypes = ProfileTypes()


class Unpacked(msgspec.Struct, frozen=True, kw_only=True):
    """A chart with its profile applied."""

    chart: Path
    values: tuple[Path, ...]
    secrets: tuple[str, ...]


class ChartRenderer:
    """Renders apps; `helm` for those that are charts."""

    def __init__(self, helm: Helm) -> None:
        self._helm = helm

    async def __call__(self, files: AppFiles) -> tuple[ManifestObject, ...]:
        """Raises BadManifest, BadArchive, BadProfile, HelmMissing and HelmFailed."""
        if files.file.startswith(ZIP):
            raise BadArchive("a zip file: a chart is a .tgz, as `helm package` makes it")
        if is_archive(files.file):
            return await self._rendered(files)
        return await asyncio.to_thread(_plain_objects, files)

    async def _rendered(self, files: AppFiles) -> tuple[ManifestObject, ...]:
        with tempfile.TemporaryDirectory(prefix="dovetail-chart-") as directory:
            root = Path(directory)
            unpacked = await asyncio.to_thread(_unpacked, files, root)
            home = root / "home"
            home.mkdir()
            run = ChartRun(
                chart=unpacked.chart,
                release=files.release,
                namespace=files.namespace,
                values=unpacked.values,
                overrides=[f"{key}={value}" for key, value in files.values.items()],
                secrets=(*unpacked.secrets, *secrets_among(files.values)),
            )
            output = await self._helm.template(run, home)
        objects = await asyncio.to_thread(objects_of, output, f"chart of {files.app}")
        return tuple(each for each in objects if is_installed(each))


def _plain_objects(files: AppFiles) -> tuple[ManifestObject, ...]:
    """What would change a chart is not dropped in silence."""
    if files.values:
        raise BadProfile(f"{next(iter(files.values))!r} is a value of a chart: the app is none")
    if files.profile:
        with tempfile.TemporaryDirectory(prefix="dovetail-chart-") as directory:
            types = _unpacked_profile(files.profile, Path(directory))
            if types.configresource or _has_values(Path(directory), types):
                raise BadProfile("the profile changes a chart, and the app is none")
    return objects_of(files.file, files.app)


def _has_values(profile: Path, types: ProfileTypes) -> bool:
    if not types.values:
        return False
    content = _file_of_profile(profile, types.values, "values").read_bytes()
    return any(documents_of(content, types.values))


def is_installed(manifest: ManifestObject) -> bool:
    """Whether an installation has the object: not if it is only a hook for something else."""
    annotations = manifest["metadata"].get("annotations") or {}
    hooks = {each.strip() for each in str(annotations.get(HOOK) or "").split(",")} - {""}
    return not hooks or bool(hooks & INSTALL_HOOKS)


def _unpacked(files: AppFiles, root: Path) -> Unpacked:
    charts, profile = root / "chart", root / "profile"
    charts.mkdir()
    unpack(files.file, charts)
    values: list[Path] = []
    if files.profile:
        profile.mkdir()
        values = _apply_profile(files.profile, profile, charts)
    chart = chart_directory(charts, files.app)
    secrets = [
        each
        for path in (chart / "values.yaml", *values)
        if path.is_file()
        for each in _secrets_in(path)
    ]
    return Unpacked(chart=chart, values=tuple(values), secrets=tuple(secrets))


def _secrets_in(path: Path) -> Iterator[str]:
    """Values that helm can read and we cannot are helm's to complain about."""
    try:
        documents = documents_of(path.read_bytes(), path.name)
    except BadManifest:
        return
    yield from secrets_among(list(documents))


def _apply_profile(content: bytes, target: Path, charts: Path) -> list[Path]:
    """Puts its files into the chart; answers its values."""
    types = _unpacked_profile(content, target)
    for each in types.configresource or ():
        source = _file_of_profile(target, each.filepath, "configresource")
        place = path_below(charts, each.chartpath)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(source.read_bytes())
        except OSError as error:
            raise BadProfile(f"configresource: {each.chartpath}: {error.strerror}") from error
    return [_file_of_profile(target, types.values, "values")] if types.values else []


def _file_of_profile(target: Path, name: str, field: str) -> Path:
    found = path_below(target, name)
    if not found.is_file():
        raise BadProfile(f"{field}: there is no {name} in the profile")
    return found


def _unpacked_profile(content: bytes, target: Path) -> ProfileTypes:
    if not is_archive(content):
        raise BadProfile("the profile is no .tgz")
    unpack(content, target)
    found = [target / name for name in PROFILE_MANIFESTS if (target / name).is_file()]
    if not found:
        there = ", ".join(sorted(each.name for each in target.iterdir())[:10]) or "nothing"
        raise BadProfile(f"there is no {PROFILE_MANIFESTS[0]} in the profile, but {there}")
    documents = documents_of(found[0].read_bytes(), found[0].name)
    try:
        document = without_nulls(documents[0] if documents else {})
        return msgspec.convert(document, ProfileManifest).type
    except msgspec.ValidationError as error:
        raise BadProfile(f"{found[0].name}: {error}") from error
