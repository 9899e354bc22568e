"""Settings of the daemon: good ones are taken from file and flags, bad ones refused in words."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dovetail.cli.agent.client import DEFAULT, VARIABLE
from dovetail.cli.agent.settings import AGENT, options
from dovetail.cli.main import main
from dovetail.config.values import BadSettings
from dovetail.node.admission.configuration import Outage, Scope
from dovetail.node.agent.checks import check, check_machine, metrics_address
from dovetail.node.agent.daemon import configuration_of, source_of
from dovetail.node.agent.settings import AgentSettings, RoleSettings, seconds
from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints import BadPolicy, TopologyPolicy
from dovetail.node.sources.directory import ManifestDirectory
from dovetail.node.sources.kubelet import KubeletPods
from dovetail.node.sources.kubelet_client import BadSource
from dovetail.node.topology import synthetic
from tests.support.paths import ROOT

GATE = "--feature-gates=QoSResourceManager=true"
DEVICES = "--device-plugins-enabled"
SHARED = "--device-plugins-shared=vendor.com/gpu"
ON = {"feature_gates": "QoSResourceManager=true"}


def invoke(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["agent", *arguments])
    return done.exit_code, done.output


def load(flags: dict[str, Any]) -> AgentSettings:
    return AGENT.load(flags.get("config_file"), {}, flags).settings


def loaded(**flags: Any) -> AgentSettings:
    return load({**ON, **flags})


def test_the_file_is_taken_and_flags_win(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(
        """
        reconcile_period = "10s"
        feature_gates = { QoSResourceManager = true }
        [topology]
        policy = "restricted"
        scope = "pod"
        [plugins]
        directories = ["/one", "/two"]
        names = { "vendor.com/cpu" = "cpu" }
        [roles.batch]
        outage = "fail-open"
        [roles."a role"]
        needs = ["NIC"]
        """
    )
    config = load({"config_file": str(file), "topology_scope": "container"})
    assert (config.topology.policy, config.topology.scope) == ("restricted", "container")
    assert config.plugins.directories == ("/one", "/two")
    assert config.plugins.names == {"vendor.com/cpu": "cpu"}
    assert config.roles == {
        "batch": RoleSettings(outage="fail-open"),
        "a role": RoleSettings(needs=("NIC",)),
    }
    check(config)
    found = configuration_of(config, synthetic())
    assert (found.policy, found.scope) == (TopologyPolicy.RESTRICTED, Scope.CONTAINER)
    assert found.outage_of("batch") is Outage.FAIL_OPEN
    assert found.outage_of("a role") is Outage.REJECT
    assert found.nodes == CpuSet({0, 1})


def test_variables_win_over_the_file_and_flags_over_variables(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text("reconcile_period = '10s'\nsysfs = '/file'\n[topology]\nscope = 'pod'\n")
    environment = {
        "DOVETAIL_AGENT_CONFIG": str(file),
        "DOVETAIL_AGENT_FEATURE_GATES": "QoSResourceManager=true",
        "DOVETAIL_AGENT_SYSFS": "/variable",
        "DOVETAIL_AGENT_PODS_ALWAYS": "cpu,memory",
        "DOVETAIL_AGENT_TOPOLOGY_POLICY": "restricted",
        "DOVETAIL_SYSFS": "/of/no/agent",
    }
    config, origins = AGENT.load(None, environment, {"topology_policy": "best-effort"})
    check(config)
    assert (config.reconcile_period, config.sysfs) == ("10s", "/variable")
    assert (config.topology.policy, config.topology.scope) == ("best-effort", "pod")
    assert config.pods.always == ("cpu", "memory")
    assert origins["sysfs"] == "environment DOVETAIL_AGENT_SYSFS"
    assert origins["topology.policy"] == "flag --topology-policy"


def test_the_daemon_reads_its_environment() -> None:
    variables = {"DOVETAIL_AGENT_LOG_LEVEL": "loud"}
    done = CliRunner().invoke(main, ["agent", GATE], env=variables)
    assert done.exit_code == 2
    assert "environment DOVETAIL_AGENT_LOG_LEVEL: 'loud' is not one of" in " ".join(
        done.output.split()
    )


def test_whoever_asks_the_daemon_finds_it_where_it_is_set() -> None:
    setting = AGENT.settings["control_socket"]
    assert (setting.variable, setting.default) == (VARIABLE, DEFAULT)


def test_the_names_of_the_specification_and_the_kubelet_are_known() -> None:
    names = {name for option in options() for name in option.opts}
    assert names >= {
        "--feature-gates",
        "--qos-resource-manager-reconcile-period",
        "--reconcile-period",
        "--qos-resource-manager-resource-names-map",
        "--topology-manager-policy",
        "--topology-manager-scope",
    }


def test_lists_and_maps_are_written_with_commas() -> None:
    config = loaded(plugins_directories="/a,/b", plugins_names="x=cpu,y=memory")
    assert config.plugins.directories == ("/a", "/b")
    assert config.plugins.names == {"x": "cpu", "y": "memory"}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "the feature gate QoSResourceManager is off"),
        (["--feature-gates=QoSResourceManager=false"], "--feature-gates=QoSResourceManager=true"),
        (["--feature-gates=QoSResourceManager"], "'QoSResourceManager' is not of the form KEY=VAL"),
        (["--feature-gates=QoSResourceManager=maybe"], "Expected `bool`, got `str`"),
        ([GATE + ",Other=true"], "Other is unknown"),
        ([GATE + ",QoSResourceManager=true"], "is given twice"),
        ([GATE, "--reconcile-period=3"], "'3' is not text of the form"),
        ([GATE, "--reconcile-period=0s"], "must be more than nothing"),
        ([GATE, "--qos-resource-manager-reconcile-period=soon"], "'soon' is not"),
        ([GATE, "--topology-manager-policy=strict"], "'strict' is not one of best-effort, none"),
        ([GATE, "--topology-scope=node"], "'node' is not one of container, pod"),
        ([GATE, "--topology-max-allowable-numa-nodes=4"], "a whole number, at least 8"),
        ([GATE, "--runtime-backend=docker"], "'docker' is not one of cri, nri, proxy"),
        ([GATE, "--pods-source=directory"], "pods.directory must say which"),
        ([GATE, "--pods-source=etcd"], "'etcd' is not one of directory, kubelet, none"),
        ([GATE, "--metrics-address=9178"], "is no address and port"),
        ([GATE, "--metrics-address=localhost:http"], "is no address and port"),
        ([GATE, "--metrics-address=127.0.0.1:99999"], "is no address and port"),
        ([GATE, f"--control-socket=/{'x' * 120}"], "121 bytes; 1 to 103 are possible"),
        ([GATE, "--control-socket="], "0 bytes; 1 to 103 are possible"),
        ([GATE, "--control-socket=/a", "--pod-resources-socket=/a"], "must be different sockets"),
        ([GATE, "--runtime-listen=/a", "--runtime-socket=/a"], "it would ask itself"),
        (
            [GATE, DEVICES, "--device-plugins-directory=/var/lib/kubelet/device-plugins"],
            "it must be one of the agent's own",
        ),
        ([GATE, DEVICES, f"--device-plugins-directory=/{'x' * 100}"], "too long for sockets"),
        ([GATE, DEVICES, "--device-plugins-shared=gpu"], "'gpu' is no name of an extended"),
        (
            [GATE, DEVICES, SHARED, f"--device-plugins-kubelet-directory=/{'x' * 80}"],
            "kubelet_directory: it is too long",
        ),
        ([GATE, "--log-level=loud"], "'loud' is not one of"),
        ([GATE, "--log-format=xml"], "'xml' is not one of json, text"),
        ([GATE, "--outages-outage=hope"], "'hope' is not one of"),
        ([GATE, "--plugins-names=cpu"], "'cpu' is not of the form KEY=VALUE"),
        ([GATE, "--config=/nowhere/agent.toml"], "No such file"),
        (["--no-such-flag"], "No such option"),
        (["no-such-command"], "No such command"),
        ([GATE, "state"], "options of the daemon do not go with state"),
    ],
)
def test_a_bad_flag_is_refused_with_what_would_be_right(flags: list[str], words: str) -> None:
    code, output = invoke(*flags)
    assert code == 2
    assert words in output.replace("\n", " ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "Expected '='"),
        ("reconcile_periods = 1", "unknown key reconcile_periods; did you mean reconcile_period?"),
        ("[runtime]\nsockets = 1", "unknown key runtime.sockets; did you mean runtime.socket?"),
        ("runtime = 1", "runtime is a section: write [runtime]"),
        ("sysfs = 1", "sysfs: 1 is not text"),
        ("[topology]\nalign = 'cpu'", "topology.align: 'cpu' is not a list, each text"),
        ("[roles.x]\noutage = 'hope'", "roles: Invalid enum value 'hope' - at `$[...].outage`"),
        ("[roles.x]\nfoo = 1", "roles: Object contains unknown field `foo` - at `$[...]`"),
        ("[feature_gates]\nQoSResourceManager = 1", "feature_gates: Expected `bool`"),
    ],
)
def test_a_bad_file_is_refused_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(text)
    with pytest.raises(BadSettings, match=re.escape(words)) as refused:
        load({"config_file": str(file)})
    assert str(file) in str(refused.value)


def test_what_roles_need_has_to_be_added_to_known_pods() -> None:
    config = loaded(pods_source="none")
    check(config)
    needing = msgspec.structs.replace(config, roles={"web": RoleSettings(needs=("NIC",))})
    with pytest.raises(BadSettings, match=r"roles\.web\.needs: pods\.source is none"):
        check(needing)


STATIC = '{"policyName":"static","defaultCpuSet":"0-7","checksum":1}'


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("cpu_manager_state", STATIC, "--cpu-manager-policy=none"),
        ("memory_manager_state", STATIC.replace("s", "S", 1), "--memory-manager-policy=None"),
    ],
)
def test_it_does_not_start_beside_a_static_manager(
    tmp_path: Path, file: str, text: str, words: str
) -> None:
    (tmp_path / file).write_text(text)
    code, output = invoke(GATE, f"--kubelet-root={tmp_path}", f"--state-dir={tmp_path / 's'}")
    assert code == 6
    assert words in output
    assert not (tmp_path / "s").exists()
    check_machine(loaded(kubelet_root=str(tmp_path), allow_static_managers=True))


@pytest.mark.parametrize("text", ['{"policyName":"none"}', "[]", "{", "", '{"policyName":7}'])
def test_other_states_of_the_kubelet_are_no_reason_to_refuse(tmp_path: Path, text: str) -> None:
    (tmp_path / "cpu_manager_state").write_text(text)
    check_machine(loaded(kubelet_root=str(tmp_path)))


def test_it_does_not_start_without_a_machine(tmp_path: Path) -> None:
    flags = [f"--sysfs={tmp_path}", f"--state-dir={tmp_path / 's'}", f"--kubelet-root={tmp_path}"]
    code, output = invoke(GATE, *flags)
    assert code == 6
    assert "is no sysfs" in output


def test_machines_with_many_nodes_need_a_say() -> None:
    config = loaded(topology_policy="restricted")
    with pytest.raises(BadPolicy, match="max-allowable-numa-nodes"):
        configuration_of(config, synthetic(9, 1, 1, 1))


def test_a_key_is_the_key_of_something() -> None:
    with pytest.raises(BadSettings, match=r"pods.client_key: pods.client_certificate must"):
        check(loaded(pods_client_key="/k"))


def test_pods_come_from_where_the_settings_say(tmp_path: Path) -> None:
    assert source_of(loaded(pods_source="none").pods, "") is None
    directory = loaded(pods_source="directory", pods_directory=str(tmp_path)).pods
    assert isinstance(source_of(directory, ""), ManifestDirectory)
    assert isinstance(source_of(loaded(pods_url="http://127.0.0.1:10255").pods, ""), KubeletPods)
    with pytest.raises(BadSource):
        source_of(loaded(pods_url="http://192.0.2.1:10255").pods, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3s", 3), ("1m30s", 90), ("500ms", 0.5), ("1.5h", 5400), ("1h1m1s1ms", 3661.001)],
)
def test_durations_are_written_as_in_kubernetes(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 999))
def test_the_parts_of_a_duration_add_up(hours: int, minutes: int, thousandths: int) -> None:
    total = hours * 3600 + minutes * 60 + thousandths / 1000
    assert seconds(f"{hours}h{minutes}m{thousandths}ms") == pytest.approx(total)


def test_metrics_may_be_anywhere_or_nowhere() -> None:
    assert metrics_address("") is None
    assert metrics_address("127.0.0.1:9178") == ("127.0.0.1", 9178)
    assert metrics_address("[::1]:0") == ("::1", 0)


def test_every_setting_is_described_and_in_the_page() -> None:
    page = (ROOT / "docs/node-agent.md").read_text(encoding="utf-8")
    assert [key for key, each in AGENT.settings.items() if not each.description] == []
    missing = [key for key, each in AGENT.settings.items() if f"`{each.key}`" not in page]
    assert missing == []


def test_the_packaged_file_is_good() -> None:
    file = ROOT / "packaging/agent.toml"
    config = load({"config_file": str(file)})
    check(config)
    assert tomllib.loads(file.read_text())["feature_gates"] == {"QoSResourceManager": True}
