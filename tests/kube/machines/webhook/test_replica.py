"""Settings of the webhook that cannot work are told before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.config.values import BadSettings
from dovetail.kube.machines.settings import WebhookSettings
from dovetail.kube.machines.webhook.replica import address_of, files_of, service_hosts


@pytest.mark.parametrize("listen", ["", "9443", "127.0.0.1", "127.0.0.1:99999", ":9443"])
def test_an_address_that_is_none_is_refused(listen: str) -> None:
    with pytest.raises(BadSettings, match=r"--webhook-listen: .* is not HOST:PORT"):
        address_of(WebhookSettings(listen=listen))


def test_an_address_has_host_and_port() -> None:
    assert address_of(WebhookSettings(listen="0.0.0.0:9443")) == ("0.0.0.0", 9443)
    assert address_of(WebhookSettings(listen="[::]:9443")) == ("::", 9443)


def test_files_need_both_and_are_for_nothing_else() -> None:
    assert files_of(WebhookSettings()) is None
    both = WebhookSettings(certificates="files", cert="a.crt", key="a.key")
    assert files_of(both) == (Path("a.crt"), Path("a.key"))
    for lacking in (
        WebhookSettings(certificates="files"),
        WebhookSettings(certificates="files", cert="a.crt"),
        WebhookSettings(certificates="files", key="a.key"),
        WebhookSettings(cert="a.crt", key="a.key"),
    ):
        with pytest.raises(BadSettings, match="--webhook-cert"):
            files_of(lacking)


def test_a_service_is_called_by_these_names() -> None:
    assert service_hosts("hook", "lab") == ("hook.lab.svc", "hook.lab.svc.cluster.local")
