"""A token bucket: so many a second, a few at once; refused or waited for beyond that."""

from __future__ import annotations

from dovetail.aio.token_bucket import TokenBucket


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    now = 0.0
    bucket = TokenBucket(10, 2, lambda: now)
    now = 100.0
    assert [bucket.take() for _ in range(3)] == [True, True, False]
