"""Paths and query strings, from odd to hopeless."""

from __future__ import annotations

from hypothesis import given

from tests.fuzz.address_noise import noisy_paths, noisy_queries
from tests.fuzz.examiner import Examiner
from tests.fuzz.routes import Call


def test_bent_queries(examiner: Examiner) -> None:
    @examiner.examples(1000)
    @given(noisy_queries())
    def check(case: tuple[Call, bytes]) -> None:
        call, target = case
        examiner.examine(call.message()._replace(target=target), closely=False)

    check()


def test_bent_paths(examiner: Examiner) -> None:
    @examiner.examples(300)
    @given(noisy_paths())
    def check(case: tuple[Call, bytes]) -> None:
        call, target = case
        examiner.examine(call.message()._replace(target=target), closely=False)

    check()
