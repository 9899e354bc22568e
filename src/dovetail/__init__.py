"""Dovetail fits workloads to hardware."""

__version__ = "0.1.0"
