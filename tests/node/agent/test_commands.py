"""The commands that ask the agent: what they show, and what they say if nobody answers."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import grpc
import pytest
from click.testing import CliRunner

from dovetail.cli.agent import SUMMARIES, agent
from dovetail.cli.main import main

INFO = {
    "oci_property_name": "CpusetCpus",
    "is_node_resource": False,
    "is_scalar_resource": True,
    "allocated_quantity": 2.0,
    "allocation_result": "0-1",
    "envs": {"NIC": "eth0"},
    "annotations": {},
    "mounts": [],
    "devices": [],
}
POD = {
    "uid": "u1",
    "namespace": "default",
    "name": "one",
    "role": "web",
    "type": "",
    "admitted": True,
    "at": 0.0,
    "plugins": ["cpu"],
    "containers": [
        {"name": "main", "id": "", "allocations": {"cpu": INFO}, "missing": ["memory"]},
        {"name": "aide\x1b[31m", "id": "", "allocations": {}, "missing": []},
    ],
}
STATE = {
    "pods": [POD, {**POD, "name": "two", "admitted": False, "containers": []}],
    "removals": [{"uid": "u9", "waiting_for": ["cpu", "memory"]}],
    "node": {
        "resources": {"bandwidth": {"capacity": 100.5, "allocatable": 99.0}},
        "removed": ["gone"],
    },
    "troubles": ["a file was set aside"],
}
PLUGINS = {
    "plugins": [
        {
            "resource": "cpu",
            "socket": "/p/cpu.sock",
            "state": "up",
            "since": 0.0,
            "options": {"need_reconcile": True, "with_topology_alignment": True},
            "versions": ["v1alpha1"],
            "error": "",
            "retries": 0,
            "next_retry": None,
            "legacy": False,
        },
        {
            "resource": "",
            "socket": "/p/bad.sock",
            "state": "failed",
            "since": 60.0,
            "options": None,
            "versions": [],
            "error": "it says nothing",
            "retries": 3,
            "next_retry": 120.0,
            "legacy": False,
        },
    ]
}
EXPLANATION = {
    "pods": [POD],
    "admissions": [
        {
            "uid": "u1",
            "namespace": "default",
            "name": "one",
            "at": 0.0,
            "role": "web\x07",
            "result": "rejected",
            "reason": "plugin_down",
            "words": "the plugin for cpu is not there",
            "later": True,
            "resources": [
                {
                    "resource": "cpu",
                    "container": "main",
                    "requested": "2",
                    "limit": "4",
                    "hints": [
                        {"nodes": "0", "preferred": True},
                        {"nodes": "0-1", "preferred": False},
                    ],
                    "merged": {"nodes": None, "preferred": True},
                    "allocation": INFO,
                },
                {"resource": "memory", "hints": [], "missing": "it is down", "reused": True},
            ],
        }
    ],
}


@contextmanager
def serving(answer: Any, code: grpc.StatusCode | None = None) -> Iterator[str]:
    """Something that answers all questions alike, as an agent or not."""
    directory = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    path = directory / "c.sock"

    def handle(body: bytes, context: Any) -> bytes:
        if code:
            context.abort(code, str(answer))
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(handle)
    names = dict.fromkeys(("State", "Plugins", "Explain"), handler)
    with ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool)
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("dovetail.agent.v1.Agent", names)]
        )
        server.add_insecure_port(f"unix:{path}")
        server.start()
        try:
            yield str(path)
        finally:
            server.stop(None).wait()
            shutil.rmtree(directory)


def invoke(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["agent", *arguments])
    return done.exit_code, done.output


def test_state_for_people() -> None:
    with serving(STATE) as control:
        code, output = invoke("state", "--control-socket", control)
    assert code == 0
    assert output == (
        "POD          ROLE  CONTAINER     RESOURCE  QUANTITY  GIVEN\n"
        "default/one  web   main          cpu              2  CpusetCpus=0-1 NIC=eth0\n"
        "                                 memory              (its plugin is down)\n"
        "                   aide\\x1b[31m\n"
        "default/two  web                                     (being admitted)\n"
        "node: bandwidth capacity 100.5, allocatable 99\n"
        "node: gone is gone\n"
        "u9 is over; not told yet: cpu, memory\n"
        "trouble: a file was set aside\n"
        "2 pods.\n"
    )


def test_state_of_a_node_without_pods() -> None:
    empty = {"pods": [], "removals": [], "node": {"resources": {}, "removed": []}, "troubles": []}
    with serving(empty) as control:
        assert invoke("state", "--control-socket", control)[1] == (
            "No pod holds anything.\n0 pods.\n"
        )


def test_plugins_for_people() -> None:
    with serving(PLUGINS) as control:
        code, output = invoke("plugins", "--control-socket", control)
    assert code == 0
    assert output == (
        "RESOURCE  STATE   SINCE                 OPTIONS              SOCKET\n"
        "cpu       up      1970-01-01T00:00:00Z  alignment,reconcile  /p/cpu.sock\n"
        "?         failed  1970-01-01T00:01:00Z                       /p/bad.sock\n"
        "/p/bad.sock: it says nothing; next attempt 1970-01-01T00:02:00Z\n"
    )


def test_device_plugins_for_people() -> None:
    gpu = {
        "resource": "vendor.com/gpu",
        "mode": "shared",
        "socket": "/d/gpu.sock",
        "state": "failed",
        "since": 0.0,
        "options": {"preferred_allocation": True, "deallocates": True},
        "devices": 4,
        "healthy": 0,
        "held_by_classes": 1,
        "held_by_kubelet": 2,
        "error": "it ended\x1b",
        "kubelet": "no kubelet",
        "retries": 1,
        "next_retry": 60.0,
    }
    nic = {**gpu, "resource": "vendor.com/nic", "mode": "exclusive", "state": "up", "healthy": 4}
    nic |= {"error": "", "kubelet": "", "next_retry": None, "options": {}}
    with serving({**PLUGINS, "device_plugins": [gpu, nic]}) as control:
        code, output = invoke("plugins", "--control-socket", control)
    assert code == 0
    _, _, told = output.partition("\n\n")
    assert [" ".join(line.split()) for line in told.splitlines()] == [
        "DEVICE PLUGIN MODE STATE SINCE DEVICES HELD OPTIONS SOCKET",
        (
            "vendor.com/gpu shared failed 1970-01-01T00:00:00Z 0 of 4 healthy "
            "1 by classes, 2 by kubelet preferred,deallocate /d/gpu.sock"
        ),
        "vendor.com/nic exclusive up 1970-01-01T00:00:00Z 4 of 4 healthy 1 by classes /d/gpu.sock",
        "vendor.com/gpu: it ended\\x1b; next attempt 1970-01-01T00:01:00Z",
        "vendor.com/gpu: at the kubelet: no kubelet",
    ]


def test_explanation_for_people() -> None:
    with serving(EXPLANATION) as control:
        code, output = invoke("explain", "one", "--control-socket", control)
    assert code == 0
    assert output == (
        "1970-01-01T00:00:00Z default/one (role web\\x07): rejected, plugin_down\n"
        "  the plugin for cpu is not there. It may succeed later by itself.\n"
        "  main: cpu 2, limit 4\n"
        "    the plugin offered node 0 (preferred); node 0-1\n"
        "    all resources together: any node (preferred)\n"
        "    given 2: CpusetCpus=0-1 NIC=eth0\n"
        "  memory\n"
        "    the plugin offered nowhere\n"
        "    it had enough from before\n"
        "    without its plugin: it is down\n"
        "default/one holds now\n"
        "  main: cpu 2 (CpusetCpus=0-1 NIC=eth0); no memory: its plugin was down\n"
        "  aide\\x1b[31m: nothing\n"
    )


@pytest.mark.parametrize("command", [["state"], ["plugins"], ["explain", "one"]])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_programs_get_the_answer_as_it_is(command: list[str], form: str) -> None:
    import yaml

    answer = {"state": STATE, "plugins": PLUGINS, "explain": EXPLANATION}[command[0]]
    with serving(answer) as control:
        code, output = invoke(*command, "-o", form, "--control-socket", control)
    assert code == 0
    assert yaml.safe_load(output) == answer


def test_nobody_there(tmp_path: Path) -> None:
    code, output = invoke("state", "--control-socket", str(tmp_path / "none.sock"))
    assert code == 4
    assert "no agent serves there. Is `dovetail agent` running?" in output
    stale = tempfile.mktemp(prefix="dt", dir="/tmp")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(stale)
    code, output = invoke("state", "--control-socket", stale)
    Path(stale).unlink()
    assert code == 4
    assert "no agent serves there" in output


def test_a_path_that_is_too_long_for_a_socket() -> None:
    code, output = invoke("state", "--control-socket", "/tmp/" + "x" * 120)
    assert code == 4
    assert "path too long" in output


def test_a_pod_that_nobody_knows() -> None:
    with serving("nothing is known of it", grpc.StatusCode.NOT_FOUND) as control:
        code, output = invoke("explain", "one", "--control-socket", control)
    assert (code, output) == (3, "Error: nothing is known of it\n")


def test_an_agent_that_fails() -> None:
    with serving("it broke", grpc.StatusCode.INTERNAL) as control:
        code, output = invoke("state", "--control-socket", control)
    assert (code, "it broke" in output) == (6, True)


@pytest.mark.parametrize(
    ("answer", "code"), [(b"no JSON", None), ("no such method", grpc.StatusCode.UNIMPLEMENTED)]
)
def test_something_else_at_the_socket(answer: Any, code: grpc.StatusCode | None) -> None:
    with serving(answer, code) as control:
        assert invoke("state", "--control-socket", control)[0] == 4


def test_every_command_is_listed_with_the_first_sentence_of_its_help() -> None:
    context = click.Context(agent)
    assert agent.list_commands(context) == list(SUMMARIES)
    for name, summary in SUMMARIES.items():
        command = agent.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert (command.help or "").partition("\n\n")[0].replace("\n", " ") == summary
        assert summary.split(".")[0] in " ".join(invoke("--help")[1].split())
