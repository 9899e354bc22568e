"""Certificates of extender and kube-scheduler, as two Secrets that `dovetail manifests` prints.

kube-scheduler reads its files when it starts, so nothing here can be renewed behind its back: an
authority is made, signs both sides and is forgotten. Whoever wants them renewed has cert-manager
fill the same Secrets.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime, timedelta

import yaml

from dovetail.kube.machines.webhook.certificates import (
    AUTHORITIES,
    LEAF,
    LEAF_KEY,
    KeyedCertificate,
    new_authority,
    new_leaf,
    pem_bundle,
    pem_key,
)
from dovetail.kube.manifests.installation import EXTENDER, EXTENDER_CLIENT, Installation

LASTS = timedelta(days=365)


def certificates_text(chosen: Installation, now: datetime) -> str:
    """The Secrets of both sides. Each says whom to trust, and has a key of its own."""
    authority = new_authority(now, LASTS, name="dovetail extender")
    server = new_leaf(authority, chosen.extender_hosts, now, LASTS, name=EXTENDER)
    client = new_leaf(authority, (), now, LASTS, name="kube-scheduler")
    sides = ((EXTENDER, server), (EXTENDER_CLIENT, client))
    documents = [_secret(name, chosen.namespace, leaf, authority) for name, leaf in sides]
    return yaml.safe_dump_all(documents, sort_keys=False, width=10_000)


def _secret(
    name: str, namespace: str, leaf: KeyedCertificate, authority: KeyedCertificate
) -> dict[str, object]:
    data = {
        AUTHORITIES: pem_bundle([authority.certificate]),
        LEAF: pem_bundle([leaf.certificate]),
        LEAF_KEY: pem_key(leaf.key),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/tls",
        "data": {key: b64encode(value).decode() for key, value in data.items()},
    }
