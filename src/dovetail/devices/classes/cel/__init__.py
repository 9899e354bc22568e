"""CEL, the part that device selectors of Kubernetes need: parsed with positions, and evaluated."""

from dovetail.devices.classes.cel.evaluate import CelDevice, CelError, Quantity, Semver, matches
from dovetail.devices.classes.cel.syntax import BadCel, parse

__all__ = ["BadCel", "CelDevice", "CelError", "Quantity", "Semver", "matches", "parse"]
