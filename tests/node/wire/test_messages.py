"""Our declarations and protobuf's own, made from the published tables, say the same bytes."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as Theirs
from hypothesis import given, settings
from hypothesis import strategies as some

from dovetail.node.wire import (
    associated_devices,
    device_plugin,
    pod_resources,
    registration,
    resource_plugin,
)
from dovetail.wire.codec import Message, decode, encode
from tests.node.wire import tables
from tests.support.node import device_plugin_program

APIS = (
    (registration, tables.REGISTRATION),
    (resource_plugin, tables.RESOURCE_PLUGIN),
    (pod_resources, tables.POD_RESOURCES),
    (device_plugin, device_plugin_program.TABLE),
)

SCALARS: dict[int, some.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_STRING: some.text(max_size=6),
    FieldDescriptor.TYPE_BOOL: some.booleans(),
    FieldDescriptor.TYPE_DOUBLE: some.floats(allow_nan=False),
    FieldDescriptor.TYPE_UINT64: some.integers(0, 2**63 - 1),
    FieldDescriptor.TYPE_INT64: some.integers(-(2**63), 2**63 - 1),
}


def declared(module: ModuleType) -> dict[str, type[Message]]:
    return {
        name: each
        for name, each in vars(module).items()
        if inspect.isclass(each) and issubclass(each, Message) and each is not Message
    }


SPLIT = {resource_plugin: associated_devices}
"""Tables whose messages are declared in two modules."""

PAIRS = [
    pytest.param(ours, tables.classes(table)[name], id=f"{module.__name__.split('.')[-1]}.{name}")
    for module, table in APIS
    for name, ours in {**declared(module), **declared(SPLIT.get(module, module))}.items()
]


@pytest.mark.parametrize(("module", "table"), APIS)
def test_every_message_of_the_tables_is_declared(module: ModuleType, table: str) -> None:
    inside = {"NUMANode"} if module in (pod_resources, device_plugin) else set()
    found = {*declared(module), *declared(SPLIT.get(module, module))}
    assert set(tables.classes(table)) == found | inside


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@settings(max_examples=25, deadline=None)
@given(data=some.data())
def test_what_protobuf_writes_is_read_and_written_back(
    ours: type[Message], theirs: type[Theirs], data: some.DataObject
) -> None:
    made = filled(theirs, data)
    read = decode(ours, made.SerializeToString())
    assert same(read, made)
    assert theirs.FromString(encode(read)) == made


def filled(theirs: type[Theirs], data: some.DataObject, depth: int = 3) -> Theirs:
    """One with values drawn for some of its fields."""
    made: Any = theirs()
    field: Any  # The generated stubs and the C extension name their descriptors apart.
    for field in theirs.DESCRIPTOR.fields:
        if not data.draw(some.booleans()):
            continue
        if field.message_type and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            key = data.draw(SCALARS[field.message_type.fields_by_name["key"].type])
            if value.message_type:
                # Reading an entry makes it.
                inner = filled_inner(value, data, depth)
                getattr(made, field.name)[key].MergeFrom(inner)
            else:
                getattr(made, field.name)[key] = scalar(value, data)
        elif field.is_repeated:
            many = data.draw(some.integers(0, 2))
            for _ in range(many):
                if field.message_type:
                    getattr(made, field.name).append(filled_inner(field, data, depth))
                else:
                    getattr(made, field.name).append(scalar(field, data))
        elif field.message_type:
            getattr(made, field.name).SetInParent()
            getattr(made, field.name).MergeFrom(filled_inner(field, data, depth))
        else:
            setattr(made, field.name, scalar(field, data))
    return made  # type: ignore[no-any-return]


def filled_inner(field: Any, data: some.DataObject, depth: int) -> Theirs:
    inner: type[Theirs] = field.message_type._concrete_class
    return filled(inner, data, depth - 1) if depth else inner()


def scalar(field: FieldDescriptor, data: some.DataObject) -> Any:
    if field.enum_type:
        return data.draw(some.sampled_from([each.number for each in field.enum_type.values]))
    return data.draw(SCALARS[field.type])


def same(ours: Any, theirs: Any) -> bool:
    """Field by field, by name."""
    if not isinstance(ours, Message):
        return bool(ours == theirs)
    for field in theirs.DESCRIPTOR.fields:
        mine, other = getattr(ours, field.name), getattr(theirs, field.name)
        if field.message_type and field.message_type.GetOptions().map_entry:
            alike = set(mine) == set(other) and all(same(mine[key], other[key]) for key in mine)
        elif field.is_repeated:
            alike = len(mine) == len(other) and all(map(same, mine, other))
        elif field.message_type and mine is None:
            alike = not theirs.HasField(field.name)
        else:
            alike = same(mine, other)
        if not alike:
            return False
    return True
