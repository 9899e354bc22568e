"""An independent DRA driver: `python -m tests.support.node.dra_driver_program --driver ...`

It speaks the kubelet's `pluginregistration` and `dra.v1` as they are published; nothing of dovetail
is imported, and its messages are protobuf's own, made of the table below. It serves a socket in the
kubelet's registry, publishes one ResourceSlice and does so again when that is gone or differs (a
kubelet that starts removes the slices of its node), and writes CDI specs for what it prepares. In a
test (the process has to share the node's mounts, for the kubelet's directories are fixed):

    driver = bed.node.process(
        "dra-driver", sys.executable, "-m", "tests.support.node.dra_driver_program",
        "--driver", "gpu.example.com", "--node", "node-0", "--kubeconfig", kubeconfig,
        "--cdi", bed.containerd.cdi,
        "--device", "dev0:memory=40Gi,model=big",       # quantities are capacities
        "--mount", "/tmp/claims/{device}:/claims/{device}",
        "--log", calls, "--control", control, environment={"PYTHONPATH": ROOT})

A prepared device is, in the container, the variable DRA_DEV0 (the claim's uid), /dev/dra-dev0 and
the mounts. --log gets a line of JSON for each call: {"call": "NodePrepareResources", "claim": name,
"uid": uid, "devices": [...], "at": seconds}; `calls(path)` reads them. --control is a file of JSON
that is read again at each call, and ten times a second for the slice (missing: all is well):

    {"hang": ["NodePrepareResources"], "refuse": {"NodePrepareResources": "why"},
     "garbage": ["NodePrepareResources"], "die": "NodePrepareResources",
     "gone": ["dev0"], "taints": {"dev0": "NoSchedule"}}       # of the slice
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc

from tests.node.wire import tables

TABLE = """
Claim: namespace=1:string uid=2:string name=3:string
NodePrepareResourcesRequest: claims=1:[Claim]
NodePrepareResourcesResponse: claims=1:<string,NodePrepareResourceResponse>
NodePrepareResourceResponse: devices=1:[Device] error=2:string
Device: request_names=1:[string] pool_name=2:string device_name=3:string cdi_device_ids=4:[string]
NodeUnprepareResourcesRequest: claims=1:[Claim]
NodeUnprepareResourcesResponse: claims=1:<string,NodeUnprepareResourceResponse>
NodeUnprepareResourceResponse: error=1:string
"""
API = tables.classes(TABLE)
REGISTRATION = tables.classes(tables.REGISTRATION)
DRA = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
GARBAGE = b"\xff\xff\xff\xff"
LOOK_SECONDS = 0.1
NOT_FOUND, REFUSED = 404, 300


def calls(log: Path, call: str = "") -> list[dict[str, Any]]:
    """What a driver with that --log was asked; of one kind, or all."""
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    found = [json.loads(line) for line in lines if line.endswith("\n")]
    return [each for each in found if call in ("", each["call"])]


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    kubelet = Path("/var/lib/kubelet")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("driver", "node", "kubeconfig"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--cdi", type=Path, required=True)
    parser.add_argument("--registry", type=Path, default=kubelet / "plugins_registry")
    parser.add_argument("--plugins", type=Path, default=kubelet / "plugins")
    for name in ("device", "mount"):
        parser.add_argument(f"--{name}", action="append", default=[])
    parser.add_argument("--log", type=Path)
    parser.add_argument("--control", type=Path)
    return parser.parse_args(words)


class Server:
    """The API server, by a kubeconfig of one cluster and a certificate."""

    def __init__(self, kubeconfig: str) -> None:
        config = json.loads(Path(kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._at = urlsplit(cluster["server"]).netloc
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as file:
            for part in ("client-certificate-data", "client-key-data"):
                file.write(base64.b64decode(user[part]))
            file.flush()
            self._tls.load_cert_chain(file.name)

    def call(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        connection = HTTPSConnection(self._at, context=self._tls, timeout=10)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            found: dict[str, Any] = json.loads(answer.read())
            return answer.status, found
        finally:
            connection.close()


class DraDriverProgram:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.server = Server(given.kubeconfig)
        self.logging = threading.Lock()

    # What it has.

    def slice(self) -> dict[str, Any]:
        control = self.control()
        devices = [described(each) for each in self.given.device]
        for each in devices:
            if effect := control.get("taints", {}).get(each["name"]):
                each["taints"] = [{"key": "test", "effect": effect}]
        gone = control.get("gone", ())
        return {
            "driver": self.given.driver,
            "nodeName": self.given.node,
            "pool": {"name": self.given.node, "generation": 1, "resourceSliceCount": 1},
            "devices": [each for each in devices if each["name"] not in gone],
        }

    def publish(self) -> None:
        name, wanted = f"{self.given.node}-{self.given.driver}", self.slice()
        status, there = self.server.call("GET", f"{SLICES}/{name}")
        if status == NOT_FOUND:
            made = {"metadata": {"name": name}, "spec": wanted}
            self.expect(*self.server.call("POST", SLICES, made))
            self.called("Publish")
        elif status < REFUSED and without_times(there["spec"]) != wanted:
            there["spec"] = wanted
            self.expect(*self.server.call("PUT", f"{SLICES}/{name}", there))
            self.called("Publish")

    def expect(self, status: int, said: dict[str, Any]) -> None:
        if status >= REFUSED:
            print("refused:", said.get("message"), flush=True)

    # What it answers.

    def prepare(self, request: Any) -> Any:
        answer = API["NodePrepareResourcesResponse"]()
        for claim in request.claims:
            into = answer.claims[claim.uid]
            try:
                results = self.allocated(claim)
            except (OSError, HTTPException, LookupError, ValueError) as error:
                into.error = str(error)
                continue
            self.called(
                PREPARE,
                claim=claim.name,
                uid=claim.uid,
                devices=[each["device"] for each in results],
            )
            self.write_cdi(claim.uid, [each["device"] for each in results])
            for each in results:
                into.devices.add(
                    request_names=[each["request"]],
                    pool_name=each["pool"],
                    device_name=each["device"],
                    cdi_device_ids=[f"{self.given.driver}/device={claim.uid}-{each['device']}"],
                )
        return answer

    def unprepare(self, request: Any) -> Any:
        answer = API["NodeUnprepareResourcesResponse"]()
        for claim in request.claims:
            self.called(UNPREPARE, claim=claim.name, uid=claim.uid)
            self.spec_file(claim.uid).unlink(missing_ok=True)
            answer.claims[claim.uid].error = ""
        return answer

    def allocated(self, claim: Any) -> list[dict[str, Any]]:
        """What is allocated to the claim of this driver and pool, if it is that very claim."""
        kind = f"/apis/resource.k8s.io/v1/namespaces/{claim.namespace}/resourceclaims"
        status, found = self.server.call("GET", f"{kind}/{claim.name}")
        if status >= REFUSED:
            raise LookupError(found.get("message"))
        if found["metadata"]["uid"] != claim.uid:
            raise LookupError(f"claim {claim.name} is another by now")
        results = found["status"]["allocation"]["devices"]["results"]
        mine = [each for each in results if each["driver"] == self.given.driver]
        known = {each["name"] for each in self.slice()["devices"]}
        for each in mine:
            if each["pool"] != self.given.node or each["device"] not in known:
                raise LookupError(f"no device {each['device']} in pool {each['pool']}")
        return mine

    def write_cdi(self, uid: str, devices: Sequence[str]) -> None:
        spec = {
            "cdiVersion": "0.6.0",
            "kind": f"{self.given.driver}/device",
            "devices": [
                {"name": f"{uid}-{each}", "containerEdits": self.edits(uid, each)}
                for each in devices
            ],
        }
        draft = self.given.cdi / f".{uid}"
        draft.write_text(json.dumps(spec))
        draft.rename(self.spec_file(uid))

    def edits(self, uid: str, device: str) -> dict[str, Any]:
        mounts = [each.replace("{device}", device).split(":") for each in self.given.mount]
        return {
            "env": [f"DRA_{re.sub('[^A-Z0-9]', '_', device.upper())}={uid}"],
            "deviceNodes": [{"path": f"/dev/dra-{device}", "hostPath": "/dev/zero"}],
            "mounts": [
                {"hostPath": host, "containerPath": inside, "options": ["rw", "bind"]}
                for host, inside in mounts
            ],
        }

    def spec_file(self, uid: str) -> Path:
        found: Path = self.given.cdi / f"{self.given.driver}-{uid}.json"
        return found

    def get_info(self, _: Any) -> Any:
        self.called("GetInfo")
        return REGISTRATION["PluginInfo"](
            type="DRAPlugin",
            name=self.given.driver,
            endpoint=str(self.socket),
            supported_versions=["v1.DRAPlugin"],
        )

    def notify(self, status: Any) -> Any:
        self.called("Registered", ok=status.plugin_registered, error=status.error)
        return REGISTRATION["RegistrationStatusResponse"]()

    # How it behaves.

    def control(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.given.control.read_text())
        except (AttributeError, OSError, ValueError):
            return {}
        return found

    def called(self, call: str, **more: Any) -> None:
        if self.given.log:
            line = json.dumps({"call": call, **more, "at": time.time()})
            with self.logging, self.given.log.open("a") as log:
                log.write(line + "\n")
        if self.control().get("die") == call:
            os._exit(1)

    def unary(self, call: str, handle: Callable[[Any], Any], question: Any) -> Any:
        def answer(data: bytes, context: grpc.ServicerContext) -> bytes:
            control = self.control()
            if call in control.get("hang", ()):
                self.called(f"{call} hangs")
            while call in control.get("hang", ()) and context.is_active():
                time.sleep(LOOK_SECONDS)
                control = self.control()
            if why := control.get("refuse", {}).get(call):
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, why)
            if call in control.get("garbage", ()):
                return GARBAGE
            made: bytes = handle(question.FromString(data)).SerializeToString()
            return made

        return grpc.unary_unary_rpc_method_handler(answer)

    # How it is found.

    @property
    def socket(self) -> Path:
        found: Path = self.given.plugins / self.given.driver / "dra.sock"
        return found

    def run(self) -> None:
        self.socket.parent.mkdir(parents=True, exist_ok=True)
        self.given.registry.mkdir(parents=True, exist_ok=True)
        servers = [
            self.serve(
                self.socket,
                DRA,
                {
                    PREPARE: self.unary(PREPARE, self.prepare, API[f"{PREPARE}Request"]),
                    UNPREPARE: self.unary(UNPREPARE, self.unprepare, API[f"{UNPREPARE}Request"]),
                },
            ),
            # The kubelet comes when it sees this one.
            self.serve(
                self.given.registry / f"{self.given.driver}-reg.sock",
                "pluginregistration.Registration",
                {
                    "GetInfo": self.unary("GetInfo", self.get_info, REGISTRATION["InfoRequest"]),
                    "NotifyRegistrationStatus": self.unary(
                        "NotifyRegistrationStatus", self.notify, REGISTRATION["RegistrationStatus"]
                    ),
                },
            ),
        ]
        while servers:
            try:
                self.publish()
            except (OSError, HTTPException, ValueError) as error:
                print("not published:", error, flush=True)
            time.sleep(LOOK_SECONDS)

    def serve(self, at: Path, service: str, methods: dict[str, Any]) -> grpc.Server:
        server = grpc.server(ThreadPoolExecutor(16))
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, methods)])
        at.unlink(missing_ok=True)
        server.add_insecure_port(f"unix:{at}")
        server.start()
        return server


def described(text: str) -> dict[str, Any]:
    """`name`, or `name:key=value,key=value`."""
    name, _, rest = text.partition(":")
    device: dict[str, Any] = {"name": name}
    for key, _, value in (each.partition("=") for each in rest.split(",") if each):
        if re.fullmatch(r"\d+(Ki|Mi|Gi)?", value):
            device.setdefault("capacity", {})[key] = {"value": value}
        else:
            device.setdefault("attributes", {})[key] = {"string": value}
    return device


def without_times(spec: dict[str, Any]) -> dict[str, Any]:
    """The server notes when a taint came."""
    for device in spec["devices"]:
        for taint in device.get("taints", ()):
            taint.pop("timeAdded", None)
    return spec


if __name__ == "__main__":
    DraDriverProgram(arguments()).run()
