"""Messages of `admission.k8s.io/v1`: what the API server asks, and the answers it understands."""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.podfit.objects import ApiStruct

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"
FORBIDDEN, INVALID = 403, 422
REASONS = {FORBIDDEN: "Forbidden", INVALID: "Invalid"}

RawObject = dict[str, Any]


class UserInfo(ApiStruct, frozen=True, kw_only=True):
    username: str = ""


class AdmissionRequest(ApiStruct, frozen=True, kw_only=True):
    """Objects are as the API server has them. One with a generated name has none yet, and its
    namespace is told beside it."""

    uid: str
    operation: str
    namespace: str = ""
    sub_resource: str = ""
    user_info: UserInfo = UserInfo()
    object: RawObject | None = None
    old_object: RawObject | None = None


class AskedReview(ApiStruct, frozen=True, kw_only=True):
    request: AdmissionRequest


class StatusCause(ApiStruct, frozen=True, kw_only=True):
    field: str
    message: str
    reason: str = "FieldValueInvalid"


class StatusDetails(ApiStruct, frozen=True, kw_only=True):
    kind: str
    name: str
    causes: tuple[StatusCause, ...]


class RefusalStatus(ApiStruct, frozen=True, kw_only=True, omit_defaults=True):
    code: int
    reason: str
    message: str
    details: StatusDetails | None = None


class AdmissionResponse(ApiStruct, frozen=True, kw_only=True, omit_defaults=True):
    uid: str
    allowed: bool
    patch_type: str = ""
    patch: bytes = b""
    status: RefusalStatus | None = None


ASKED = msgspec.json.Decoder(AskedReview)


def encoded(response: AdmissionResponse) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def allowed(request: AdmissionRequest, patch: list[RawObject] | None = None) -> AdmissionResponse:
    """As it is, or with the operations of a JSON patch."""
    if not patch:
        return AdmissionResponse(uid=request.uid, allowed=True)
    return AdmissionResponse(
        uid=request.uid, allowed=True, patch_type="JSONPatch", patch=msgspec.json.encode(patch)
    )


def forbidden(request: AdmissionRequest, message: str) -> AdmissionResponse:
    """Nothing is wrong with the object but the moment, or who asks: as quotas refuse."""
    status = RefusalStatus(code=FORBIDDEN, reason=REASONS[FORBIDDEN], message=message)
    return AdmissionResponse(uid=request.uid, allowed=False, status=status)


def invalid(
    request: AdmissionRequest, kind: str, faults: list[tuple[str, str]]
) -> AdmissionResponse:
    """Path and message of each fault, for people and for programs."""
    meta = (request.object or {}).get("metadata") or {}
    details = StatusDetails(
        kind=kind,
        name=meta.get("name") or meta.get("generateName") or "",
        causes=tuple(StatusCause(field=path, message=message) for path, message in faults),
    )
    status = RefusalStatus(
        code=INVALID,
        reason=REASONS[INVALID],
        message="; ".join(f"{path}: {message}" for path, message in faults),
        details=details,
    )
    return AdmissionResponse(uid=request.uid, allowed=False, status=status)
