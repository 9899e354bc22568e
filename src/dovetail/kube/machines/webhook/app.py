"""The webhook over HTTP: two paths, an AdmissionReview in and out; every replica serves it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dovetail.kube.machines.metrics import REVIEWS
from dovetail.kube.machines.webhook.review import Reviewer
from dovetail.kube.machines.webhook.wire import (
    ASKED,
    AdmissionRequest,
    AdmissionResponse,
    encoded,
)
from dovetail.kube.runtime.serving import Answer, Application, NotUnderstood, json_service

LARGEST_BYTES = 16 * 2**20
"""Of a question: an object as large as the API server takes, twice, with room to spare."""


def application(reviewer: Reviewer) -> Application:
    answers = {
        "/guests": answer("guest", reviewer.guest),
        "/machines": answer("machine", reviewer.machine),
    }
    return json_service(answers, LARGEST_BYTES)


def answer(kind: str, review: Callable[[AdmissionRequest], AdmissionResponse]) -> Answer:
    async def answered(body: bytes) -> bytes:
        try:
            response = review(ASKED.decode(body).request)
        except msgspec.MsgspecError as error:
            raise NotUnderstood(f"not an AdmissionReview of v1: {error}") from error
        REVIEWS.labels(kind, "allowed" if response.allowed else "refused").inc()
        return encoded(response)

    return answered
