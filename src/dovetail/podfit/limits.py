"""Pods that cannot be placed rightly here, and why: better refused than placed wrongly."""

from __future__ import annotations

from dovetail.podfit.objects import Pod


def unsupported(pod: Pod) -> str | None:
    """What of the pod is not handled, in words for its event; None: everything is.

    A volume can tie a pod to some nodes, and a claim to devices. Both need the state of further
    objects, and a volume may have to be made in step with the choice of the node.
    """
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            claim = volume.persistent_volume_claim.claim_name
            return (
                f"volume {volume.name!r} uses PersistentVolumeClaim {claim!r}: this scheduler does"
                " not place pods with persistent volumes"
            )
        if volume.ephemeral is not None:
            return (
                f"volume {volume.name!r} is a generic ephemeral volume: this scheduler does not"
                " place pods with persistent volumes"
            )
    for asked in pod.spec.resource_claims:
        return (
            f"resource claim {asked.get('name', '')!r}: this scheduler does not allocate"
            " ResourceClaims; ask for a resource class instead"
        )
    return None
