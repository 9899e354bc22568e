"""How answers are laid out for people, from answers that a server might give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Parrot, commands

EXPLANATION: dict[str, Any] = {
    "verdict": "not_now",
    "summary": "No host fits now.",
    "of": "hosts",
    "total": 1000,
    "hosts": 1000,
    "fitting": 0,
    "funnel": [
        {"reason": "amount", "group": "", "constraint": "VCPU:8", "left": 12, "words": "VCPU:8"},
        {"reason": "amount", "group": "", "constraint": "FPGA:1", "left": 0, "words": "FPGA:1"},
    ],
    "nearest": [
        {
            "name": "host1",
            "uuid": "1",
            "fits": False,
            "findings": [
                {"met": True, "ever": True, "words": "VCPU on host1: wants 8, free 9 of 32"},
                {"met": False, "ever": True, "words": "FPGA on host1: wants 1, free 0 of 1"},
                {"met": False, "ever": False, "words": "trait \x1b[31mX is missing"},
            ],
        }
    ],
    "relaxations": [
        {"hosts": 12, "query": "resources=VCPU:8", "words": "12 hosts fit without FPGA:1"}
    ],
}
REQUEST = {
    "allocations": {"u1": {"resources": {"VCPU": 8}}},
    "mappings": {"_VM": ["u1"]},
    "scores": {"total": 7, "best-fit": 7},
}
SUMMARIES: dict[str, Any] = {"u1": {"traits": [], "resources": {}}}
NAMES = {"providers": {"u1": {"name": "numa0", "uuid": "u1", "host": "host1", "host_uuid": "h"}}}

LAID_OUT = """\
No host fits now.

HOSTS LEFT  AFTER
     1,000  in the fleet
        12  VCPU:8
         0  FPGA:1

Nearest:
  host1
    ok    VCPU on host1: wants 8, free 9 of 32
    short FPGA on host1: wants 1, free 0 of 1
    never trait \\x1b[31mX is missing

What would help:
  12 hosts fit without FPGA:1
    dovetail candidates 'resources=VCPU:8'
"""


def test_an_explanation_goes_from_the_sentence_to_what_would_help(parrot: Parrot) -> None:
    parrot.says("GET", "/dovetail/v1/explain", EXPLANATION)
    found = commands(parrot.url)("explain", "-r", "VCPU:8,FPGA:1")
    assert (found.exit_code, found.stdout) == (1, LAID_OUT)


def test_a_host_asked_about_is_judged_first(parrot: Parrot) -> None:
    parrot.says("GET", "/dovetail/v1/explain", EXPLANATION)
    found = commands(parrot.url)("explain", "-r", "VCPU:8,FPGA:1", "--host", "a b")
    assert found.stdout.splitlines()[:6] == [
        "host1 does not fit.",
        "  ok    VCPU on host1: wants 8, free 9 of 32",
        "  short FPGA on host1: wants 1, free 0 of 1",
        "  never trait \\x1b[31mX is missing",
        "",
        "No host fits now.",
    ]
    assert found.stdout.count("host1 ") == 1
    assert parrot.asked[0][1] == "/dovetail/v1/explain?resources=VCPU:8,FPGA:1&host=a%20b"


def test_an_explanation_calls_providers_by_the_names_that_were_asked_about(parrot: Parrot) -> None:
    uuid = "06019487-8219-5b22-84d2-a2af23b9e4b4"
    step = {"left": 0, "words": f"in the tree of {uuid}"}
    offer = {"words": f"fits if not in the tree of {uuid}", "query": f"in_tree={uuid}"}
    answer = {**EXPLANATION, "funnel": [step], "nearest": [], "relaxations": [offer]}
    parrot.says("GET", "/dovetail/v1/explain", answer)
    parrot.says("POST", "/dovetail/v1/names", {"providers": {"host1": {"uuid": uuid}}})
    found = commands(parrot.url)("explain", "-r", "VCPU:8", "--in-tree", "host1")
    assert uuid not in found.stdout
    assert found.stdout.splitlines()[-3:] == [
        "What would help:",
        "  fits if not in the tree of host1",
        "    dovetail candidates 'in_tree=host1'",
    ]
    assert parrot.asked[-1][1] == f"/dovetail/v1/explain?resources=VCPU:8&in_tree={uuid}"


def test_a_name_that_a_query_has_to_quote_is_not_put_into_one(parrot: Parrot) -> None:
    uuid = "06019487-8219-5b22-84d2-a2af23b9e4b4"
    offer = {"words": "fits", "query": f"in_tree={uuid}"}
    parrot.says("GET", "/dovetail/v1/explain", {**EXPLANATION, "relaxations": [offer]})
    parrot.says("POST", "/dovetail/v1/names", {"providers": {"a 'b'": {"uuid": uuid}}})
    found = commands(parrot.url)("explain", "-r", "VCPU:8", "--in-tree", "a 'b'")
    assert f"dovetail candidates 'in_tree={uuid}'" in found.stdout


def test_whom_to_move_is_told_where_it_is_asked_for(parrot: Parrot) -> None:
    words = "host1 fits if you move c1 (VCPU:4) from host1 to host2"
    plan = {"host": {"name": "host1", "uuid": "1"}, "moves": [], "swap": False, "words": words}
    parrot.says("GET", "/dovetail/v1/explain", {**EXPLANATION, "moves": [plan]})
    found = commands(parrot.url)("explain", "-r", "VCPU:8", "--moves")
    assert found.stdout.splitlines()[-3:] == ["", "Whom to move:", f"  {words}"]
    assert parrot.asked[-1][1] == "/dovetail/v1/explain?resources=VCPU:8&moves=1"


def test_that_more_would_help_than_is_shown_is_said(parrot: Parrot) -> None:
    parrot.says("GET", "/dovetail/v1/explain", {**EXPLANATION, "more_relaxations": 4})
    found = commands(parrot.url)("explain", "-r", "VCPU:8,FPGA:1")
    assert found.stdout == f"{LAID_OUT}  and 4 more that change as little\n"


def test_that_one_host_does_not_fit_is_a_no_although_others_do(parrot: Parrot) -> None:
    fits = {**EXPLANATION, "verdict": "fits", "fitting": 3}
    parrot.says("GET", "/dovetail/v1/explain", fits)
    run = commands(parrot.url)
    assert run("explain", "-r", "VCPU:8", "--host", "host1").exit_code == 1
    assert run("explain", "-r", "VCPU:8").exit_code == 0
    parrot.says("GET", "/dovetail/v1/explain", {**fits, "nearest": []})
    assert run("explain", "-r", "VCPU:8", "--host", "gone").exit_code == 1


def test_what_if_sends_the_changes_and_names_what_is_added(parrot: Parrot, tmp_path: Path) -> None:
    added = {"name": "new", "uuid": "n", "children": [{"name": "new_numa", "uuid": "u2"}]}
    (tmp_path / "new.jsonl").write_text(json.dumps(added) + "\n\n")
    requests = [REQUEST, {"allocations": {"u2": {"resources": {"VCPU": 8}}}, "mappings": {}}]
    answer = {
        "before": {"hosts": 1},
        "after": {"hosts": 2},
        "explanation": {**EXPLANATION, "verdict": "fits"},
        "allocation_requests": requests,
        "provider_summaries": SUMMARIES,
    }
    parrot.says("POST", "/dovetail/v1/whatif", answer)
    parrot.says("POST", "/dovetail/v1/names", NAMES)
    options = ["--drain", "host2", "--release", "c", "--add", str(tmp_path / "new.jsonl")]
    found = commands(parrot.url)("whatif", "resources=VCPU:8", *options)
    assert found.exit_code == 0
    assert found.stdout.startswith("It fits 1 host now, and would fit 2.\n\nNo host fits now.")
    assert [line.split() for line in found.stdout.splitlines()[-3:]] == [
        ["#", "HOST", "PROVIDER", "RESOURCES", "GROUPS", "SCORES"],
        ["1", "host1", "numa0", "VCPU:8", "_VM", "total:7", "best-fit:7"],
        ["2", "new", "new_numa", "VCPU:8"],
    ]
    assert json.loads(parrot.asked[0][2]) == {
        "query": "resources=VCPU:8",
        "drain": ["host2"],
        "release": ["c"],
        "add": [added],
    }
    told = json.loads(commands(parrot.url)("whatif", "-r", "VCPU:8", *options, "-o", "json").stdout)
    assert told.keys() == {"before", "after", "explanation", "candidates"}
    assert [place["host"] for place in told["candidates"]] == ["host1", "new"]


def test_only_hosts_can_be_added_by_what_if(parrot: Parrot, tmp_path: Path) -> None:
    for line, complaint in (('{"consumer": "x"}', "only hosts"), ("{", "line 1")):
        (tmp_path / "bad.jsonl").write_text(line)
        found = commands(parrot.url)("whatif", "-r", "VCPU:1", "--add", str(tmp_path / "bad.jsonl"))
        assert (found.exit_code, complaint in found.stderr) == (2, True)
    assert parrot.asked == []


@pytest.mark.parametrize("children", [5, [1], None])
def test_children_that_are_none_are_for_the_server_to_refuse(
    parrot: Parrot, tmp_path: Path, children: object
) -> None:
    (tmp_path / "bad.jsonl").write_text(json.dumps({"name": "x", "children": children}))
    parrot.says("POST", "/dovetail/v1/whatif", {"detail": "line 1: no array"}, 400)
    found = commands(parrot.url)("whatif", "-r", "VCPU:1", "--add", str(tmp_path / "bad.jsonl"))
    assert (found.exit_code, found.stderr) == (3, "Error: line 1: no array\n")
    assert json.loads(parrot.asked[0][2])["add"][0]["children"] == children


def test_a_claim_says_what_was_taken_and_how_to_give_it_back(parrot: Parrot) -> None:
    held = {"u1": {"name": "numa0", "resources": {"VCPU": 8, "MEMORY_MB": 512}}}
    answer = {"consumer": "c1", "allocations": held, "mappings": {}, "decision": 17}
    parrot.says("POST", "/dovetail/v1/claims", answer, 201)
    options = ["--project", "blue", "--user", "me", "--type", "INSTANCE", "--rank", "best-fit"]
    found = commands(parrot.url)("claim", "-r", "VCPU:8", *options)
    assert found.exit_code == 0
    assert found.stdout.splitlines() == [
        "Claimed for consumer c1:",
        "",
        "PROVIDER  RESOURCES",
        "numa0     VCPU:8 MEMORY_MB:512",
        "",
        "To give it back: dovetail release c1",
    ]
    assert json.loads(parrot.asked[0][2]) == {
        "query": "resources=VCPU:8&rank=best-fit",
        "project_id": "blue",
        "user_id": "me",
        "consumer_type": "INSTANCE",
    }


def test_a_claim_that_fits_nowhere_says_why(parrot: Parrot) -> None:
    refusal = {"status": 409, "detail": "Nothing fits.", "explanation": EXPLANATION}
    parrot.says("POST", "/dovetail/v1/claims", refusal, 409)
    found = commands(parrot.url)("claim", "-r", "VCPU:8")
    assert (found.exit_code, found.stdout) == (1, LAID_OUT)
    parrot.says("POST", "/dovetail/v1/claims", {"detail": "The consumer holds something."}, 409)
    found = commands(parrot.url)("claim", "-r", "VCPU:8")
    assert (found.exit_code, found.stdout) == (3, "")
    assert found.stderr == "Error: The consumer holds something.\n"


def test_decisions_show_what_was_taken_and_passed_over(parrot: Parrot) -> None:
    def choice(position: int, score: int) -> dict[str, Any]:
        held = {"u": {"name": f"host{position}", "resources": {"VCPU": 8}}}
        return {"position": position, "allocations": held, "scores": {"best-fit": score}}

    claimed = {
        "id": 17,
        "at": "2026-11-16T02:03:04Z",
        "consumer": "c1",
        "query": "resources=VCPU:8",
        "outcome": "claimed",
        "candidates": 39,
        "chosen": choice(1, 73),
        "passed_over": [choice(position, 70) for position in range(2, 7)],
        "words": "best of 39",
    }
    refused = {**claimed, "id": 16, "outcome": "refused", "chosen": None, "passed_over": []}
    parrot.says("GET", "/dovetail/v1/decisions", {"decisions": [claimed, refused]})
    found = commands(parrot.url)("decisions", "--limit", "2", "--consumer", "c1")
    assert found.stdout.splitlines() == [
        "17  2026-11-16T02:03:04Z  claimed  consumer c1",
        "  asked   resources=VCPU:8",
        "  because best of 39",
        "  took    #1 host1 VCPU:8  (best-fit:73)",
        "  over    #2 host2 VCPU:8  (best-fit:70)",
        "  over    #3 host3 VCPU:8  (best-fit:70)",
        "  over    #4 host4 VCPU:8  (best-fit:70)",
        "  over    2 more (-v shows them)",
        "",
        "16  2026-11-16T02:03:04Z  refused  consumer c1",
        "  asked   resources=VCPU:8",
        "  because best of 39",
    ]
    assert parrot.asked[0][1] == "/dovetail/v1/decisions?limit=2&consumer=c1"
    assert "#6 host6" in commands(parrot.url)("decisions", "-v").stdout
