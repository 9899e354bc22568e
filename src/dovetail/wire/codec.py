"""Protocol buffers as typed structs.

A message is a class whose fields carry their numbers: `name: Annotated[str, 2] = ""`. Descriptors
are made of these in memory, so no generated code is needed. Maps are declared as what they are on
the wire, repeated entries of a key and a value: so an entry without a value can be told from one
with an empty value, which matters for topology hints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from dovetail.core.errors import DovetailError

Declared = descriptor_pb2.FieldDescriptorProto

SCALARS = {
    str: Declared.TYPE_STRING,
    bytes: Declared.TYPE_BYTES,
    bool: Declared.TYPE_BOOL,
    int: Declared.TYPE_INT64,
    float: Declared.TYPE_DOUBLE,
}
"""Any integer or enumeration is an int64: up to 2**63 they are the same on the wire."""


class BadMessage(DovetailError):
    """Bytes that are not the message they should be."""


class Message(msgspec.Struct):
    """What goes over a socket; fields that are missing there have their defaults."""


M = TypeVar("M", bound=Message)


class Shape(NamedTuple):
    """The type of a field, taken apart."""

    number: int
    item: Any
    """A scalar type or a class of messages; of a map, of its values."""
    key: Any = None
    """Of a map, the type of its keys."""
    repeated: bool = False
    nullable: bool = False
    """A message that may be missing; of a map, an entry may lack its value."""


def encode(message: Message) -> bytes:
    """Deterministic: equal messages have equal bytes."""
    found = raw_class(type(message))()
    fill(found, message)
    data: bytes = found.SerializeToString(deterministic=True)
    return data


def decode(cls: type[M], data: bytes) -> M:
    try:
        return cooked(cls, raw(cls, data))
    except ValueError as error:
        raise BadMessage(f"{len(data)} bytes are no {cls.__name__}: {error}") from None


def raw(cls: type[Message], data: bytes) -> Any:
    """In the library's form, to be edited: fields that are not declared stay."""
    try:
        return raw_class(cls).FromString(data)
    except DecodeError as error:
        raise BadMessage(f"{len(data)} bytes are no {cls.__name__}: {error}") from None


def fill(found: Any, message: Message) -> None:
    """Write the message into the library's form of it."""
    for name, shape in shapes(type(message)).items():
        value = getattr(message, name)
        if shape.key is not None:
            for key in sorted(value):
                put(getattr(found, name).add(key=key), "value", value[key])
        elif not shape.repeated:
            put(found, name, value)
        elif is_message(shape.item):
            for each in value:
                fill(getattr(found, name).add(), each)
        else:
            getattr(found, name).extend(value)


def put(found: Any, name: str, value: Any) -> None:
    if isinstance(value, Message):
        getattr(found, name).SetInParent()
        fill(getattr(found, name), value)
    elif value is not None:
        setattr(found, name, value)


def cooked(cls: type[M], parsed: Any) -> M:
    """The struct of the library's form; what is not declared is left out."""
    values: dict[str, Any] = {}
    for name, shape in shapes(cls).items():
        if shape.key is not None:
            values[name] = {
                entry.key: value_of(entry, "value", shape) for entry in getattr(parsed, name)
            }
        elif shape.repeated:
            item = shape.item
            read = partial(cooked, item) if is_message(item) else item
            values[name] = tuple(map(read, getattr(parsed, name)))
        else:
            values[name] = value_of(parsed, name, shape)
    return cls(**values)


def value_of(parsed: Any, name: str, shape: Shape) -> Any:
    if not is_message(shape.item):
        return shape.item(getattr(parsed, name))
    if shape.nullable and not parsed.HasField(name):
        return None
    return cooked(shape.item, getattr(parsed, name))


@cache
def raw_class(cls: type[Message]) -> type[Any]:
    """The library's class, which keeps fields that are not declared and writes them back."""
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{cls.__name__}.proto", package="declared", syntax="proto3"
    )
    for each in reachable(cls):
        _declare(file.message_type.add(name=each.__name__), each)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"declared.{cls.__name__}"))


def _declare(into: descriptor_pb2.DescriptorProto, cls: type[Message]) -> None:
    for name, shape in shapes(cls).items():
        if shape.key is None:
            _declare_field(into, name, shape.number, shape.item, repeated=shape.repeated)
            continue
        entry = into.nested_type.add(name=f"{name}_entry")
        _declare_field(entry, "key", 1, shape.key)
        _declare_field(entry, "value", 2, shape.item)
        field = into.field.add(name=name, number=shape.number, label=Declared.LABEL_REPEATED)
        field.type = Declared.TYPE_MESSAGE
        field.type_name = f".declared.{cls.__name__}.{entry.name}"


def _declare_field(
    into: descriptor_pb2.DescriptorProto,
    name: str,
    number: int,
    item: Any,
    *,
    repeated: bool = False,
) -> None:
    label = Declared.LABEL_REPEATED if repeated else Declared.LABEL_OPTIONAL
    field = into.field.add(name=name, number=number, label=label)
    if is_message(item):
        field.type, field.type_name = Declared.TYPE_MESSAGE, f".declared.{item.__name__}"
    else:
        field.type = scalar(item)


def scalar(item: type) -> Any:
    return SCALARS[int if issubclass(item, IntEnum) else item]


def reachable(cls: type[Message]) -> Iterable[type[Message]]:
    """The class and all that are inside, each once."""
    found: dict[type[Message], None] = {}
    waiting = [cls]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found[each] = None
            waiting += [shape.item for shape in shapes(each).values() if is_message(shape.item)]
    return found


@cache
def shapes(cls: type[Message]) -> Mapping[str, Shape]:
    return {
        name: shape_of(declared)
        for name, declared in get_type_hints(cls, include_extras=True).items()
    }


def shape_of(declared: Any) -> Shape:
    assert get_origin(declared) is Annotated, f"{declared} has no field number"
    kind, number = get_args(declared)
    origin, args = get_origin(kind), get_args(kind)
    if origin is dict:
        item, nullable = without_none(args[1])
        return Shape(number, item, key=args[0], nullable=nullable)
    if origin is tuple:
        return Shape(number, args[0], repeated=True)
    item, nullable = without_none(kind)
    return Shape(number, item, nullable=nullable)


def without_none(kind: Any) -> tuple[Any, bool]:
    if get_origin(kind) in (Union, UnionType):
        (item,) = (each for each in get_args(kind) if each is not NoneType)
        return item, True
    return kind, False


def is_message(item: Any) -> bool:
    return isinstance(item, type) and issubclass(item, Message)
