"""Metrics: how they are declared, and the one way in which daemons show them."""

from __future__ import annotations

import re
import urllib.request
from importlib import import_module

import pytest

from dovetail.node.common.metrics import AGENT_METRICS
from dovetail.telemetry.metrics import METRICS, Metrics
from tests.support.paths import ROOT


def families(metrics: Metrics) -> set[str]:
    return set(re.findall(r"^# TYPE (\S+) ", metrics.page().decode(), re.MULTILINE))


def test_the_page_tells_what_was_counted_under_its_prefix() -> None:
    metrics = Metrics("oven_")
    metrics.counter("dishes_total", "Dishes done.", "kind").labels("pie").inc(2)
    metrics.gauge("heat", "Degrees.").set(180)
    metrics.histogram("bake_seconds", "How long it took.", (1, 10)).observe(3)
    lines = metrics.page().decode().splitlines()
    assert 'oven_dishes_total{kind="pie"} 2.0' in lines
    assert "# HELP oven_heat Degrees." in lines
    assert "oven_heat 180.0" in lines
    assert 'oven_bake_seconds_bucket{le="10.0"} 1.0' in lines


def test_a_daemon_without_a_server_of_http_gets_one_until_it_ends() -> None:
    metrics = Metrics("oven_")
    metrics.gauge("heat", "Degrees.").set(180)
    with metrics.http_server("127.0.0.1", 0) as port:
        address = f"http://127.0.0.1:{port}/metrics"
        with urllib.request.urlopen(address) as answer:
            assert b"oven_heat 180.0" in answer.read()
        with pytest.raises(OSError, match="in use"), metrics.http_server("127.0.0.1", port):
            pass
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address)


def test_metrics_of_the_agent_are_its_own_and_in_its_page() -> None:
    # It imports all that the agent runs, so all is declared once it is there.
    import_module("dovetail.node.agent.daemon")
    page = (ROOT / "docs/node-agent.md").read_text(encoding="utf-8")
    own = {
        each
        for each in families(AGENT_METRICS)
        if each.startswith("dovetail_") and not each.endswith("_created")
    }
    assert len(own) == 15
    assert [each for each in sorted(own) if f"`{each}`" not in page] == []
    assert not own & families(METRICS)
