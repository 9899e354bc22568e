"""The example of docs/writing-a-controller.md, as a process of its own, asked over loopback."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import msgspec

from dovetail.intents.candidates.partitions import PartitionCandidates
from dovetail.intents.controllers import Roster
from dovetail.ledger import Ledger
from tests.service.intents.controllers.documented import PAGE
from tests.service.intents.controllers.rig import call, fan_out
from tests.support.intents.scenario import C1, C2, C3, C4, FWALL, base
from tests.support.processes import Process

SOURCE = Path(__file__).with_name("example_controller.py")


def test_the_page_shows_the_example_as_it_is() -> None:
    source = SOURCE.read_text(encoding="utf-8")
    assert f"```python\n{source}```" in PAGE
    assert len(source.splitlines()) <= 40


async def test_the_example_keeps_apps_in_their_region(kept: Ledger, tmp_path: Path) -> None:
    scenario = base()
    labels = {C1: ["region-west"], C2: ["region-west", "renewable"], C3: ["region-east"]}
    clusters = {
        name: msgspec.structs.replace(each, labels=frozenset(labels.get(name, ())))
        for name, each in scenario.fleet.clusters.items()
    }
    fleet = msgspec.structs.replace(scenario.fleet, clusters=clusters)
    page = tmp_path / "as_printed.py"
    page.write_text(PAGE.split("```python\n")[1].split("```")[0], encoding="utf-8")
    process = Process([sys.executable, page, "0"], tmp_path / "log")
    process.start()
    try:
        await process.until_ready(lambda: "serving at" in process.output)
        port = int(process.output.rpartition(":")[2])
        with fan_out(kept) as controllers:
            west, moon = [
                await controllers.answers(
                    scenario.group, fleet, Roster(placement=(call("region", port, intent),))
                )
                for intent in ("west", "moon")
            ]
        process.send_signal(signal.SIGTERM)
        assert await process.until_ended() == 0
    finally:
        process.kill()
    (answer,) = (each for each in west.answers if each.controller == "region")
    assert isinstance(answer.candidates, PartitionCandidates)
    (candidate,) = answer.candidates.alternatives
    allowed = candidate[FWALL].parts[0].clusters
    assert list(allowed.within(list(clusters))) == [C1, C2]
    assert answer.scores[FWALL] == {C2: 5}
    assert answer.refusals[FWALL][C3].words == "it is in region-east, not in region-west"
    assert answer.refusals[FWALL][C4].words == "it is in no region, not in region-west"
    (failure,) = moon.refusals
    assert "no cluster has the label region-moon" in failure.words
