"""What is not handled is said, so that no pod is placed wrongly."""

from __future__ import annotations

from dovetail.podfit.pod_request import unsupported_reason
from tests.podfit.building import pod


def test_ordinary_pods_are_fine() -> None:
    assert unsupported_reason(pod("p", volumes=[{"name": "token", "projected": {}}])) is None


def test_persistent_volumes_are_not() -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "db-0"}}
    assert unsupported_reason(pod("p", volumes=[claim])) == (
        "volume 'data' uses PersistentVolumeClaim 'db-0': this scheduler does not place pods with"
        " persistent volumes"
    )
    ephemeral = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}
    assert "generic ephemeral volume" in str(unsupported_reason(pod("p", volumes=[ephemeral])))


def test_resource_claims_are_not() -> None:
    assert unsupported_reason(pod("p", resourceClaims=[{"name": "gpu"}])) == (
        "resource claim 'gpu': this scheduler does not allocate ResourceClaims; ask for a resource"
        " class instead"
    )
