"""Versions, media types, tokens, methods and ways of transfer that do not belong together."""

from __future__ import annotations

from hypothesis import given

from tests.fuzz.examiner import Examiner
from tests.fuzz.header_noise import bent_messages, every_method
from tests.fuzz.message import Message


def test_bent_headers(examiner: Examiner) -> None:
    @examiner.examples(250)
    @given(bent_messages())
    def check(message: Message) -> None:
        examiner.examine(message)

    check()


def test_every_method_on_every_path(examiner: Examiner) -> None:
    for message in examiner.share_of(every_method()):
        examiner.examine(message, closely=False)
