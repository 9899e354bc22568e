"""Settings of the webhook that cannot work are told before anything runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dovetail.cli.run.operator import OPERATOR
from dovetail.config.values import BadSettings
from dovetail.kube.machines.settings import WebhookSettings
from dovetail.kube.machines.webhook.replica import address_of, files_of, service_hosts
from dovetail.telemetry.metrics import METRICS
from tests.support.paths import ROOT


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


def test_the_page_names_settings_and_metrics_that_there_are() -> None:
    text = (ROOT / "docs/machines-webhook.md").read_text(encoding="utf-8")
    settings = {each.variable for each in OPERATOR.settings.values()}
    named = set(re.findall(r"\bDOVETAIL_OPERATOR_[A-Z_]+", text))
    assert "DOVETAIL_OPERATOR_WEBHOOK_LISTEN" in named
    assert named <= settings
    shown = METRICS.page().decode()
    for metric in set(re.findall(r"`(dovetail_machines_\w+)`", text)):
        assert f"# HELP {metric}" in shown
