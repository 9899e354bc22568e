"""The agent of a node and its plugins, as processes of their own."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.node.kubelet.merging import toml
from tests.support.paths import DOVETAIL
from tests.support.processes import START_SECONDS, Process

PERIOD = "200ms"
"""Of the agent's looks at plugins and containers."""


class Agent(Process):
    """`dovetail agent` with a file of settings."""

    def __init__(
        self, directory: Path, settings: Mapping[str, Any], *, prefix: Sequence[str], log: Path
    ) -> None:
        self.directory, self.settings = directory, dict(settings)
        self.file = directory / "agent.toml"
        self.control = Path(self.settings["control_socket"])
        self.endpoint = Path(self.settings["runtime"]["listen"])
        super().__init__(
            [*prefix, DOVETAIL, "agent", "--config", self.file], log, name="dovetail agent"
        )

    def start(self) -> None:
        """Until it answers; by settings that may have changed since the last time."""
        self.file.write_text(toml(self.settings))
        # One that was killed left them behind, and they would be taken for the new one's.
        self.control.unlink(missing_ok=True)
        self.endpoint.unlink(missing_ok=True)
        super().start()
        self.await_ready(self.control.exists)

    def restart(self) -> None:
        self.stop()
        self.start()

    def told(self, *arguments: str) -> Any:
        """What a command of `dovetail agent` says with -o json."""
        return json.loads(self.say(*arguments, "-o", "json"))

    def say(self, *arguments: str, check: bool = True) -> str:
        command = [str(DOVETAIL), "agent", *arguments, f"--control-socket={self.control}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.stdout

    def await_plugins(self, *resources: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while resources:
            self.check()
            states = {each["resource"]: each["state"] for each in self.told("plugins")["plugins"]}
            if all(states.get(each) == "up" for each in resources):
                return
            assert time.monotonic() < deadline, f"plugins {resources} are wanted: {states}"
            time.sleep(0.1)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Of its log."""
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]


class Plugin(Process):
    """`dovetail agent plugin`: cpu, memory or nic."""

    def __init__(
        self, kind: str, directory: Path, *, prefix: Sequence[str], log: Path, sysfs: Path
    ) -> None:
        self.socket = directory / "plugins" / f"{'NIC' if kind == 'nic' else kind}.sock"
        super().__init__(
            [
                *(*prefix, DOVETAIL, "agent", "plugin", kind),
                f"--roles={directory / 'roles.toml'}",
                f"--socket-dir={self.socket.parent}",
                f"--state-dir={directory / f'state-{kind}'}",
                f"--sysfs={sysfs}",
                "--period=0.1",
            ],
            log,
            name=f"{kind} plugin",
        )

    @property
    def resource(self) -> str:
        return self.socket.stem

    @property
    def reads(self) -> int:
        """How often it read its roles since the bed was made, the first time aside."""
        assert "roles stay as they were" not in self.output, self.output
        return self.output.count('"roles read"')

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        super().start()
        self.await_ready(self.socket.exists)

    def restart(self) -> None:
        self.stop()
        self.start()
