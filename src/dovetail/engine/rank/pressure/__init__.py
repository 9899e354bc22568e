"""Pressure on what is left of a fleet: prices at which devices are kept for who needs them."""
