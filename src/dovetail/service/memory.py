"""Freed memory given back to the operating system, after work that needed much of it for a while.

The snapshot's keeper calls it when a whole fleet was read: what rows were made of is free then, but
scattered among what stays, and glibc's malloc gives such pages back only when it is told to.
"""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Where the C library cannot, nothing happens."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
