"""How long whoever failed waits: twice as long each time, up to a cap, spread where many wait."""

from __future__ import annotations

import pytest

from dovetail.aio.backoff import Backoff, KeyedBackoff, doubling, full_jitter, jittered


def test_waits_double_up_to_the_cap() -> None:
    assert [doubling(each, 1.0, 10.0) for each in (0, 1, 2, 3, 4, 5, 10_000)] == [
        *(0.0, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0)
    ]


@pytest.mark.parametrize("failures", [1, 2, 5, 50])
def test_jitter_stays_within_what_doubling_says(failures: int) -> None:
    longest = doubling(failures, 0.1, 3.0)
    for _ in range(100):
        assert longest / 2 <= jittered(failures, 0.1, 3.0) <= longest
        assert 0.0 <= full_jitter(failures, 0.1, 3.0) <= longest


def test_a_success_starts_over() -> None:
    backoff = Backoff(first=1.0, cap=60.0)
    waits = [backoff.next() for _ in range(6)]
    assert waits[5] >= 16.0
    backoff.reset()
    assert backoff.next() <= 1.0


class TestKeyedBackoff:
    def test_the_same_attempt_waits_longer_each_time(self) -> None:
        backoff: KeyedBackoff[str] = KeyedBackoff(3.0, 10.0)
        assert not backoff.is_waiting("pod", "cpus 0-3", now=0.0)
        assert [backoff.record("pod", "cpus 0-3", now=0.0) for _ in range(4)] == [3, 6, 10, 10]
        assert backoff.wait_of("pod") == 10
        assert backoff.is_waiting("pod", "cpus 0-3", now=9.9)
        assert not backoff.is_waiting("pod", "cpus 0-3", now=10.0)

    def test_another_attempt_or_key_does_not_wait(self) -> None:
        backoff: KeyedBackoff[str] = KeyedBackoff(3.0, 10.0)
        backoff.record("pod", "cpus 0-3", now=0.0)
        assert not backoff.is_waiting("pod", "cpus 4-7", now=1.0)
        assert not backoff.is_waiting("other", "cpus 0-3", now=1.0)
        backoff.record("pod", "cpus 0-3", now=3.0)
        assert backoff.record("pod", "cpus 4-7", now=4.0) == 3.0

    def test_what_is_settled_or_gone_is_forgotten(self) -> None:
        backoff: KeyedBackoff[str] = KeyedBackoff(3.0, 10.0)
        for key in ("settled", "gone", "there"):
            backoff.record(key, None, now=0.0)
        backoff.forget("settled")
        backoff.retain(lambda key: key == "there")
        waiting = [key for key in ("settled", "gone", "there") if backoff.is_waiting(key, None, 1)]
        assert waiting == ["there"]
