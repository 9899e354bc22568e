"""Finds resource plugins by their sockets, registers them, and calls them with deadlines."""
