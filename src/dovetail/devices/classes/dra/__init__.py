"""Device classes as Kubernetes' DeviceClasses (dynamic resource allocation, DRA), and back."""

from dovetail.devices.classes.dra.convention import Untranslatable, cel_device_of
from dovetail.devices.classes.dra.from_cel import from_device_class
from dovetail.devices.classes.dra.to_cel import to_device_class

__all__ = ["Untranslatable", "cel_device_of", "from_device_class", "to_device_class"]
