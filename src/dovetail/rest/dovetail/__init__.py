"""Dovetail's own door, /dovetail/v1: a module per noun, all routes in routes.py."""
