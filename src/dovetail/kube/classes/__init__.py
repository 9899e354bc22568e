"""The devices of a node, from wherever they are published."""

from dovetail.kube.classes.sources import devices_of

__all__ = ["devices_of"]
