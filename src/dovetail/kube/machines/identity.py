"""Identity of the operator: tells the admission policies who may lift gates and hold stock.

The policies believe the account that the manifests make for the operator. Where it runs as
somebody else, by a kubeconfig, it notes its name on that account when it begins to lead.
"""

from __future__ import annotations

from typing import ClassVar

from dovetail.kube.api.port import ApiNotFound, KubeApi
from dovetail.machines.names import OPERATOR
from dovetail.podfit.objects import ApiResource, ApiStruct, KubeObject

ACCOUNT = "dovetail-operator"


class ReviewedUser(ApiStruct, frozen=True, kw_only=True):
    username: str = ""


class SelfReviewStatus(ApiStruct, frozen=True, kw_only=True):
    user_info: ReviewedUser = ReviewedUser()


class SelfSubjectReview(KubeObject, frozen=True, kw_only=True):
    """Whom the API server takes the asking client for."""

    API: ClassVar[ApiResource] = ApiResource(
        "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
    )

    status: SelfReviewStatus = SelfReviewStatus()


class ServiceAccount(KubeObject, frozen=True, kw_only=True):
    API: ClassVar[ApiResource] = ApiResource("", "v1", "serviceaccounts", "ServiceAccount")


async def note_operator(api: KubeApi, namespace: str) -> None:
    """Have the policies believe this client; nothing is written if they do already.

    Without the account there are no such policies.
    """
    try:
        account = await api.get(ServiceAccount, ACCOUNT, namespace)
    except ApiNotFound:
        return
    review = await api.create(SelfSubjectReview, {"metadata": {}})
    username = review.status.user_info.username if review is not None else ""
    is_account = username == f"system:serviceaccount:{namespace}:{ACCOUNT}"
    noted = None if is_account else username
    if account.metadata.annotations.get(OPERATOR) != noted:
        body = {"metadata": {"annotations": {OPERATOR: noted}}}
        await api.merge(ServiceAccount, ACCOUNT, body, namespace=namespace)
