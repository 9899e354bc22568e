"""A cache that never grows beyond its size: what was used least recently goes first."""

from __future__ import annotations

from dovetail.core.bounded_cache import BoundedCache


def test_what_was_used_least_recently_is_forgotten() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), len(cache)) == (1, None, 3, 2)


def test_what_is_dropped_is_gone_and_copies_are_apart() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    twin = cache.copy()
    cache.drop("a")
    cache.drop("never there")
    assert (cache.get("a"), twin.get("a")) == (None, 1)
