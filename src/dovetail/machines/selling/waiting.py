"""Why a guest waits: reasons that programs may rely on, with words for people."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class WaitReason(StrEnum):
    SOLD_OUT = "SoldOut"
    NOT_A_BUYER = "NotABuyer"
    NAMESPACE_CAP_REACHED = "NamespaceCapReached"
    USER_CAP_REACHED = "UserCapReached"
    HELD_FOR_WINDOW = "HeldForWindow"
    GROUP_INCOMPLETE = "GroupIncomplete"
    GROUP_DOES_NOT_FIT = "GroupDoesNotFit"
    NO_NODE_FITS = "NoNodeFits"
    SHAPE_DIFFERS = "ShapeDiffers"
    UNKNOWN_MACHINE = "UnknownMachine"
    UNKNOWN_TYPE = "UnknownType"
    NOT_ACCEPTED = "NotAccepted"
    OTHER_GATES = "OtherGates"
    BEING_SOLD = "BeingSold"
    """It has its unit and is on its way to the node."""


class Waiting(msgspec.Struct, frozen=True):
    reason: WaitReason
    message: str
