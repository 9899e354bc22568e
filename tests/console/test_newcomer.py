"""The newcomer's story: after `make run`, with the page alone.

Why does a request not fit, whom to move so that it does, and the claim. Each step is something
that can be seen on the page and clicked there; what it did is asked of the API in the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Api, Open
from tests.support.paths import ROOT
from tests.support.processes import Process, reserved_port
from tests.support.server import answers

WHOLE_HOSTS = 3
"""Of the demo fleet: with an FPGA, and with both NUMA nodes to be had."""
HELP_BEFORE_MAP = """() => {
  const [help, map] = [".remedies", ".verdict-map"].map((of) => document.querySelector(of));
  const isBefore = help.compareDocumentPosition(map) & Node.DOCUMENT_POSITION_FOLLOWING;
  return isBefore && help.getBoundingClientRect().bottom <= map.getBoundingClientRect().top;
}"""


@pytest.fixture
def made_to_run(tmp_path: Path) -> Iterator[str]:
    """What `make run` prints first: the console's address."""
    with reserved_port() as port:
        database = f"DEMO_DATABASE=sqlite:///{tmp_path / 'demo.db'}"
        command = ["make", "run", f"PORT={port}", database]
        process = Process(command, tmp_path / "log", cwd=ROOT, own_group=True)
        with process:
            process.await_ready(lambda: "/console" in process.output and answers(port))
            found = re.search(r"http://\S+/console", process.output)
            assert found is not None
            assert process.output.split("http://")[1].startswith(found[0][len("http://") :])
            yield found[0]


def test_from_make_run_to_a_claim(made_to_run: str, browse: Open) -> None:
    browsing = browse(made_to_run)
    page = browsing.page
    expect(page.get_by_text("38 hosts")).to_be_visible()

    page.get_by_role("link", name="Why / why not").click()
    ask_for_a_whole_host(page)
    answer = page.get_by_role("region", name=re.compile("fits|Not now|Never"))
    expect(answer.get_by_role("heading")).to_contain_text(f"{WHOLE_HOSTS} hosts fit")

    for left in reversed(range(WHOLE_HOSTS)):
        page.get_by_role("button", name="Claim the best place").click()
        expect(answer.get_by_role("heading")).to_contain_text(f"{left} host")
    # Why: the last line of the funnel that leaves a host, and what comes nearest.
    expect(page.get_by_text("none left")).to_be_visible()
    expect(page.get_by_role("region", name="Nearest misses")).to_contain_text("short")
    # What would help is there without looking for it, and in the order in which Tab goes there.
    page.evaluate("scrollTo(0, 0)")
    remedy = page.locator(".remedies .choices li").first
    expect(remedy).to_be_in_viewport(ratio=1)
    assert page.evaluate(HELP_BEFORE_MAP)

    page.get_by_role("button", name="Whom to move?").click()
    plan = page.locator("li.plan").first
    expect(plan).to_contain_text("fits if one leaves")
    plan.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("region", name="What if")).to_contain_text("1 host would")
    plan.get_by_role("button", name="Move…").click()
    plan.get_by_role("button", name="Move 1 consumer").click()

    expect(answer.get_by_role("heading")).to_contain_text("It fits")
    page.get_by_role("button", name="Claim the best place").click()
    claimed = page.get_by_role("region", name="Claim it")
    expect(claimed).to_contain_text("Claimed for consumer")
    consumer = claimed.get_by_role("link").first.get_attribute("href") or ""

    api = Api(made_to_run.removesuffix("/console"))
    held = api.get(f"/allocations/{consumer.rpartition('/')[2]}")["allocations"]
    api.close()
    amounts = sorted(
        (name, amount) for each in held.values() for name, amount in each["resources"].items()
    )
    assert amounts == [("FPGA", 1), ("VCPU", 60), ("VCPU", 60)]


def ask_for_a_whole_host(page: Page) -> None:
    """60 VCPUs on each of two NUMA nodes and an FPGA, as the form has them."""
    first = page.get_by_role("group", name="Anywhere on the host")
    first.get_by_label("amount").fill("60")
    for number, (name, amount) in enumerate((("VCPU", "60"), ("FPGA", "1"))):
        page.get_by_role("button", name="Add a group").click()
        group = page.get_by_role("group", name=f"Group {'AB'[number]}")
        group.get_by_role("combobox", name="class").first.select_option(name)
        group.get_by_label("amount").fill(amount)
    page.get_by_role("button", name="Why, or why not?").click()
