"""Configurations by which the API server calls the webhook, as far as the operator writes them.

They are installed with the manifest `machines-webhook`, which says what is reviewed. The operator
only adds whom to trust, by server-side apply, so that applying the manifest again takes nothing
away.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from dovetail.podfit.objects import ApiResource, ApiStruct, KubeObject

GROUP, VERSION = "admissionregistration.k8s.io", "v1"


class WebhookClientConfig(ApiStruct, frozen=True, kw_only=True):
    ca_bundle: bytes = b""


class CalledWebhook(ApiStruct, frozen=True, kw_only=True):
    name: str
    client_config: WebhookClientConfig = WebhookClientConfig()


class WebhookConfiguration(KubeObject, frozen=True, kw_only=True):
    """Of either kind."""

    webhooks: tuple[CalledWebhook, ...] = ()


class MutatingWebhookConfiguration(WebhookConfiguration, frozen=True, kw_only=True):
    API = ApiResource(
        GROUP,
        VERSION,
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        namespaced=False,
    )


class ValidatingWebhookConfiguration(WebhookConfiguration, frozen=True, kw_only=True):
    API = ApiResource(
        GROUP,
        VERSION,
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        namespaced=False,
    )


KINDS: tuple[type[WebhookConfiguration], ...] = (
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)


def bundles_of(configuration: WebhookConfiguration) -> list[bytes]:
    """Whom the API server trusts for each of its webhooks."""
    return [each.client_config.ca_bundle for each in configuration.webhooks]


def trusting(configuration: WebhookConfiguration, bundle: bytes) -> dict[str, Any]:
    """The fields by which it trusts the bundle. Of this very object: none is made by it."""
    encoded = b64encode(bundle).decode()
    return {
        "metadata": {"uid": configuration.metadata.uid},
        "webhooks": [
            {"name": each.name, "clientConfig": {"caBundle": encoded}}
            for each in configuration.webhooks
        ],
    }
