"""Selectors of devices by their attributes: conditions, their text, amounts compared."""
