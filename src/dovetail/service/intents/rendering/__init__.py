"""Rendering: an app's file and profile to Kubernetes objects. The reader of groups calls it.

archives   charts and profiles unpacked, whatever somebody packed into them
helm       `helm template` as a process of its own, with limits and without an environment
renderer   which of both a file needs, and what a profile changes
"""

from dovetail.service.intents.rendering.helm import Helm
from dovetail.service.intents.rendering.renderer import ChartRenderer

__all__ = ["ChartRenderer", "Helm"]
