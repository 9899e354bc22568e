"""Declaration of settings: the fields of a struct, each with its names in file, environment, flags.

A field of the struct is a setting: with the prefix `DOVETAIL_`, `port` is `--port`,
`DOVETAIL_PORT`, and `port` in the file. A field that is itself a struct is a section:
`max.body_bytes` is `--max-body-bytes`, `DOVETAIL_MAX_BODY_BYTES`, and `body_bytes` under `[max]`.
Flags, environment, file, the printed configuration and reference pages all follow from the struct.

To add a section, add a field whose type is a `SettingsStruct` with defaults. Each of its fields
says what it is for: `Annotated[int, Meta(description="...")]`. Names that hold `password` or
`secret` are masked wherever values are shown, and so are passwords in URLs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

SECRET = re.compile("password|secret")
PASSWORD_IN_URL = re.compile(r"(://[^/@:]*:)[^/]*@|([?&]password=)[^&]*")
MASK = "***"


class SettingsStruct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of a daemon, or a section of them."""


class Setting(msgspec.Struct, frozen=True):
    """One thing that can be set, and its names."""

    path: tuple[str, ...]
    """The sections it is in, and its own name."""
    kind: inspect.Type
    type: Any
    default: Any
    description: str
    prefix: str
    """Of its environment variable."""

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def argument(self) -> str:
        """As Python calls the option."""
        return "_".join(self.path)

    @property
    def flag(self) -> str:
        return "--" + self.argument.replace("_", "-")

    @property
    def variable(self) -> str:
        return self.prefix + self.argument.upper()

    @property
    def is_switch(self) -> bool:
        return isinstance(self.kind, inspect.BoolType)

    @property
    def is_list(self) -> bool:
        kinds = inspect.VarTupleType | inspect.ListType | inspect.FrozenSetType
        return isinstance(self.kind, kinds)

    @property
    def is_map(self) -> bool:
        return isinstance(self.kind, inspect.DictType)

    @property
    def is_only_in_files(self) -> bool:
        """Whether it is a map of structs, which fits into no flag and no variable."""
        return isinstance(self.kind, inspect.DictType) and isinstance(
            self.kind.value_type, inspect.StructType
        )

    def shown(self, value: Any) -> Any:
        """The value as it may be printed."""
        if value and SECRET.search(self.path[-1]):
            return MASK
        return without_passwords(value) if isinstance(value, str) else value


def without_passwords(text: str) -> str:
    return PASSWORD_IN_URL.sub(
        lambda found: f"{found[1]}{MASK}@" if found[1] else f"{found[2]}{MASK}", text
    )


def declared(
    struct: type[msgspec.Struct], prefix: str, under: tuple[str, ...] = ()
) -> Iterator[Setting]:
    """The settings of a struct and its sections; variables begin with the prefix."""
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    for field in described.fields:
        kind, description = without_description(field.type)
        path = (*under, field.name)
        if isinstance(kind, inspect.StructType):
            yield from declared(kind.cls, prefix, path)
        else:
            default = default_of(fields[field.name])
            yield Setting(path, kind, fields[field.name].type, default, description, prefix)


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    """Mutable defaults are made by a factory."""
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def without_description(kind: inspect.Type) -> tuple[inspect.Type, str]:
    """A type without its description, and the description."""
    description = ""
    while isinstance(kind, inspect.Metadata):
        description = (kind.extra_json_schema or {}).get("description", description)
        kind = kind.type
    return kind, description
