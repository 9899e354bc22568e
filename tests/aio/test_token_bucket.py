"""A token bucket: so many a second, a few at once; refused or waited for beyond that."""

from __future__ import annotations

from dovetail.aio.token_bucket import TokenBucket


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    now = 0.0
    bucket = TokenBucket(10, 2, lambda: now)
    now = 100.0
    assert [bucket.take() for _ in range(3)] == [True, True, False]


def test_whoever_waits_takes_tokens_that_are_still_to_come() -> None:
    now = 0.0
    bucket = TokenBucket(10, 2, lambda: now)
    assert [bucket.wait_seconds() for _ in range(4)] == [0.0, 0.0, 0.1, 0.2]
    now = 0.1
    assert not bucket.take()
