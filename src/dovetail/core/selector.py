"""Selectors: conditions on attributes, an OR of ANDs."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Operator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EQ = "Eq"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    GT_EQ = "GtEq"
    LT = "Lt"
    LT_EQ = "LtEq"


class Expression(msgspec.Struct, frozen=True):
    key: str
    operator: Operator
    values: tuple[str, ...] = ()


Selector = tuple[tuple[Expression, ...], ...]
"""Any of these has to have all of its expressions met. Empty, at either level: meets nothing."""
