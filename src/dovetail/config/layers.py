"""Layers of settings: flags win over the environment, that over a file, that over the defaults.

Each daemon has one `Layers`, made from the struct that declares its settings: the server's, the
scheduler's and the agent's commands load their settings with it. Every value remembers where it
came from. What is unknown or wrong is refused with the place it stands in and what would be right.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

import msgspec

from dovetail.config.declaration import Setting, SettingsStruct, declared
from dovetail.config.values import BadSettings, checked, value_of_text

DEFAULT = "default"

Struct = TypeVar("Struct", bound=SettingsStruct)


class GivenValue(NamedTuple):
    """A value and where it was found."""

    setting: Setting
    value: Any
    origin: str


class LoadedSettings(NamedTuple, Generic[Struct]):
    """The settings in force, and where each came from, by key."""

    settings: Struct
    origins: Mapping[str, str]


class Layers(Generic[Struct]):
    """The settings of one daemon: what there is, and what is in force."""

    def __init__(self, struct: type[Struct], prefix: str) -> None:
        """Environment variables of the daemon begin with the prefix."""
        self._struct = struct
        self._prefix = prefix

    @property
    def file_variable(self) -> str:
        """The variable that names the file, where no flag does."""
        return f"{self._prefix}CONFIG"

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        """All settings, by key."""
        return {setting.key: setting for setting in declared(self._struct, self._prefix)}

    @cached_property
    def sections(self) -> Mapping[tuple[str, ...], list[Setting]]:
        """The settings by section, those of none first."""
        found: dict[tuple[str, ...], list[Setting]] = {(): []}
        for setting in self.settings.values():
            found.setdefault(setting.path[:-1], []).append(setting)
        return found

    def load(
        self, file: str | None, environment: Mapping[str, str], flags: Mapping[str, Any]
    ) -> LoadedSettings[Struct]:
        """What is in force with this file, environment, and flags by argument.

        A flag that is None was not given. Raises BadSettings.
        """
        file = file or environment.get(self.file_variable)
        tree: dict[str, Any] = {}
        origins = dict.fromkeys(self.settings, DEFAULT)
        for setting, value, origin in (
            *(self._of_file(Path(file)) if file else ()),
            *self._of_environment(environment),
            *self._of_flags(flags),
        ):
            place = tree
            for section in setting.path[:-1]:
                place = place.setdefault(section, {})
            place[setting.path[-1]] = value
            origins[setting.key] = origin
        return LoadedSettings(msgspec.convert(tree, self._struct), origins)

    def _of_file(self, path: Path) -> Iterator[GivenValue]:
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadSettings(f"configuration file {path}: {error}") from error
        for setting, value in self._leaves(document, path):
            good = checked(setting, value, f"{path}: {setting.key}")
            yield GivenValue(setting, good, f"file {path}")

    def _leaves(
        self, table: Mapping[str, Any], path: Path, under: tuple[str, ...] = ()
    ) -> Iterator[tuple[Setting, Any]]:
        for name, value in table.items():
            keys = (*under, name)
            key = ".".join(keys)
            if keys in self.sections:
                if not isinstance(value, dict):
                    raise BadSettings(f"{path}: {key} is a section: write [{key}]")
                yield from self._leaves(value, path, keys)
            elif key in self.settings and self.settings[key].path == keys:
                yield self.settings[key], value
            else:
                self._refuse_unknown(path, key)

    def _refuse_unknown(self, path: Path, key: str) -> NoReturn:
        near = difflib.get_close_matches(key, self.settings, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(self.settings)}"
        raise BadSettings(f"{path}: unknown key {key}; {hint}")

    def _of_environment(self, environment: Mapping[str, str]) -> Iterator[GivenValue]:
        """An empty variable is as good as none."""
        for setting in self.settings.values():
            text = environment.get(setting.variable)
            if text and not setting.is_only_in_files:
                origin = f"environment {setting.variable}"
                value = value_of_text(setting, text, origin)
                yield GivenValue(setting, checked(setting, value, origin), origin)

    def _of_flags(self, flags: Mapping[str, Any]) -> Iterator[GivenValue]:
        for setting in self.settings.values():
            given = flags.get(setting.argument)
            if given is not None:
                value = value_of_text(setting, given, setting.flag)
                good = checked(setting, value, setting.flag)
                yield GivenValue(setting, good, f"flag {setting.flag}")
