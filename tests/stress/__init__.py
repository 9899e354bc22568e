"""Clients that claim against servers that are killed: nothing may ever be given away twice."""
