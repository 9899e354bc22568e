"""An independent device plugin: `python -m tests.support.node.device_plugin_program --resource ...`

It speaks `v1beta1` as the kubelet's API publishes it; nothing of dovetail is imported, and its
messages are protobuf's own, made of the table below. It serves a socket in --directory, registers
at `kubelet.sock` there, and again whenever that or its own socket was made anew or went, as
plugins of vendors do. In a test:

    plugin = Process(
        [sys.executable, "-m", "tests.support.node.device_plugin_program",
         "--directory", directory, "--resource", "vendor.com/gpu",
         "--device", "GPU-0:1@0", "--device", "GPU-1:1@1",        # ID, or ID@NUMA[,NUMA]
         "--env", "GPUS={ids}",                                   # all IDs, joined by commas
         "--device-node", "/dev/zero:/dev/gpu{index}:rw",         # one for each ID
         "--mount", "/opt/gpu:/opt/gpu:ro", "--annotation", "vendor.com/gpus={ids}",
         "--cdi", "vendor.com/gpu={safe}",
         "--pre-start", "--preferred", "--deallocate",            # what it serves besides
         "--log", calls, "--control", control],
        log, cwd=ROOT)

In values, {ids} stands for all IDs; {id}, {safe} (fit for a file name) and {index} (its place among
--device) for one each: such an entry is given for each ID, an environment variable for the first.

--log gets a line of JSON for each call: {"call": "Allocate", "ids": [["GPU-0:1"]], "at": seconds};
`Register` has "ok" and "error", too; `calls(path)` reads them. --control is a file of JSON that is
read again at each call, and for the list ten times a second (missing: all is well):

    {"unhealthy": ["GPU-0:1"], "gone": ["GPU-1:1"],    # of the list
     "add": ["GPU-2:1@0"],                             # to the list
     "hang": ["Allocate"], "refuse": {"Allocate": "why"}, "garbage": ["ListAndWatch", "Allocate"],
     "answers": 2,                                     # container responses of Allocate
     "raw": {"ListAndWatch": "hex"},                   # these bytes instead of an answer
     "end_stream": true,                               # ListAndWatch ends after its list
     "die": "Allocate"}                                # exit at once when that is called
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from tests.node.wire import tables

TABLE = """
Empty:
DevicePluginOptions: pre_start_required=1:bool get_preferred_allocation_available=2:bool
 deallocates=100:bool
RegisterRequest: version=1:string endpoint=2:string resource_name=3:string
 options=4:DevicePluginOptions
ListAndWatchResponse: devices=1:[Device]
TopologyInfo: nodes=1:[NUMANode]
NUMANode: ID=1:int64
Device: ID=1:string health=2:string topology=3:TopologyInfo
PreStartContainerRequest: devices_ids=1:[string]
PreStartContainerResponse:
PreferredAllocationRequest: container_requests=1:[ContainerPreferredAllocationRequest]
ContainerPreferredAllocationRequest: available_deviceIDs=1:[string]
 must_include_deviceIDs=2:[string] allocation_size=3:int64
PreferredAllocationResponse: container_responses=1:[ContainerPreferredAllocationResponse]
ContainerPreferredAllocationResponse: deviceIDs=1:[string]
AllocateRequest: container_requests=1:[ContainerAllocateRequest]
ContainerAllocateRequest: devices_ids=1:[string]
AllocateResponse: container_responses=1:[ContainerAllocateResponse]
ContainerAllocateResponse: envs=1:<string,string> mounts=2:[Mount] devices=3:[DeviceSpec]
 annotations=4:<string,string> cdi_devices=5:[CDIDevice]
CDIDevice: name=1:string
Mount: container_path=1:string host_path=2:string read_only=3:bool
DeviceSpec: container_path=1:string host_path=2:string permissions=3:string
DeallocateRequest: devices_ids=1:[string]
DeallocateResponse:
"""
"""As api.proto has it (an int32 that is not negative is the same as an int64), and what is ours:
option 100 and Deallocate."""

API = tables.classes(TABLE)
GARBAGE = b"\xff\xff\xff\xff"
LOOK_SECONDS = 0.1


def calls(log: Path, call: str = "") -> list[dict[str, Any]]:
    """What a plugin with that --log was asked; of one kind, or all."""
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    found = [json.loads(line) for line in lines if line.endswith("\n")]
    return [each for each in found if call in ("", each["call"])]


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", type=Path, default=Path("/var/lib/kubelet/device-plugins"))
    parser.add_argument("--resource", required=True)
    parser.add_argument("--endpoint", help="name of the socket [default: made of the resource]")
    parser.add_argument("--version", default="v1beta1")
    many = ("device", "env", "mount", "device-node", "annotation", "cdi")
    for name in many:
        parser.add_argument(f"--{name}", action="append", default=[])
    for name in ("pre-start", "preferred", "deallocate"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--control", type=Path)
    parser.add_argument(
        "--register-once", action="store_true", help="do not look whether kubelet.sock was remade"
    )
    return parser.parse_args(words)


class Refusal(Exception):
    pass


class DevicePluginProgram:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.name = given.endpoint or re.sub(r"[^A-Za-z0-9]", "-", given.resource) + ".sock"
        self.options = API["DevicePluginOptions"](
            pre_start_required=given.pre_start,
            get_preferred_allocation_available=given.preferred,
            deallocates=given.deallocate,
        )
        self.logging = threading.Lock()
        self.server: grpc.Server | None = None
        self.inode: int | None = None
        self.ended = threading.Event()

    # What it answers.

    def list_and_watch(self, _: Any, context: grpc.ServicerContext) -> Iterator[bytes]:
        self.called("ListAndWatch")
        told: bytes | None = None
        ended = self.ended
        while context.is_active() and not ended.is_set():
            made = self.answer("ListAndWatch", self.listed)
            if made != told:
                told = made
                yield made
            if self.control().get("end_stream"):
                return
            ended.wait(LOOK_SECONDS)

    def listed(self) -> Any:
        control = self.control()
        answer = API["ListAndWatchResponse"]()
        for each in (*self.given.device, *control.get("add", ())):
            id_, nodes = parsed(each)
            if id_ in control.get("gone", ()):
                continue
            health = "Unhealthy" if id_ in control.get("unhealthy", ()) else "Healthy"
            device = answer.devices.add(ID=id_, health=health)
            for node in nodes:
                device.topology.nodes.add(ID=node)
        return answer

    def allocate(self, request: Any) -> Any:
        asked = [list(each.devices_ids) for each in request.container_requests]
        self.called("Allocate", ids=asked)
        answer = API["AllocateResponse"]()
        for ids in asked:
            self.fill(answer.container_responses.add(), ids)
        wanted = self.control().get("answers", len(asked))
        del answer.container_responses[wanted:]
        while len(answer.container_responses) < wanted:
            answer.container_responses.add()
        return answer

    def fill(self, into: Any, ids: Sequence[str]) -> None:
        given = self.given
        for name, _, value in (each.partition("=") for each in given.env):
            into.envs[name] = next(iter(self.expanded(value, ids)))
        for name, _, value in (each.partition("=") for each in given.annotation):
            into.annotations[name] = next(iter(self.expanded(value, ids)))
        for each in (word for text in given.mount for word in self.expanded(text, ids)):
            host, inside, *mode = each.split(":")
            into.mounts.add(host_path=host, container_path=inside, read_only=mode == ["ro"])
        for each in (word for text in given.device_node for word in self.expanded(text, ids)):
            host, inside, *mode = each.split(":")
            permissions = mode[0] if mode else "rw"
            into.devices.add(host_path=host, container_path=inside, permissions=permissions)
        for each in (word for text in given.cdi for word in self.expanded(text, ids)):
            into.cdi_devices.add(name=each)

    def expanded(self, text: str, ids: Sequence[str]) -> Sequence[str]:
        text = text.replace("{ids}", ",".join(ids))
        if not re.search(r"\{(id|safe|index)\}", text):
            return [text]
        places = [parsed(each)[0] for each in self.given.device]
        return [
            text.replace("{id}", each)
            .replace("{safe}", re.sub(r"[^A-Za-z0-9_.-]", "_", each))
            .replace("{index}", str(places.index(each) if each in places else len(places)))
            for each in ids
        ]

    def pre_start(self, request: Any) -> Any:
        self.called("PreStartContainer", ids=list(request.devices_ids))
        return API["PreStartContainerResponse"]()

    def preferred(self, request: Any) -> Any:
        """The last ones, so that they differ from those the asker would take."""
        answer = API["PreferredAllocationResponse"]()
        for each in request.container_requests:
            must = list(each.must_include_deviceIDs)
            available = sorted(each.available_deviceIDs)
            self.called(
                "GetPreferredAllocation", available=available, must=must, size=each.allocation_size
            )
            others = [id_ for id_ in reversed(available) if id_ not in must]
            chosen = (must + others)[: each.allocation_size]
            answer.container_responses.add(deviceIDs=chosen)
        return answer

    def deallocate(self, request: Any) -> Any:
        self.called("Deallocate", ids=list(request.devices_ids))
        return API["DeallocateResponse"]()

    def get_options(self, _: Any) -> Any:
        self.called("GetDevicePluginOptions")
        return self.options

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

    def answer(self, call: str, make: Callable[[], Any]) -> bytes:
        control = self.control()
        while call in control.get("hang", ()):
            time.sleep(LOOK_SECONDS)
            control = self.control()
        if call in control.get("refuse", {}):
            raise Refusal(control["refuse"][call])
        if call in control.get("garbage", ()):
            return GARBAGE
        if call in control.get("raw", {}):
            return bytes.fromhex(control["raw"][call])
        made: bytes = make().SerializeToString(deterministic=True)
        return made

    def unary(self, call: str, handle: Callable[[Any], Any], question: str) -> Any:
        def answer(data: bytes, context: grpc.ServicerContext) -> bytes:
            request = API[question].FromString(data)
            # It is logged first: what hangs was called, too.
            made = handle(request)
            try:
                return self.answer(call, lambda: made)
            except Refusal as error:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))

        return grpc.unary_unary_rpc_method_handler(answer)

    def methods(self) -> dict[str, Any]:
        found = {
            "GetDevicePluginOptions": self.unary(
                "GetDevicePluginOptions", self.get_options, "Empty"
            ),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(self.list_and_watch),
            "Allocate": self.unary("Allocate", self.allocate, "AllocateRequest"),
            "PreStartContainer": self.unary(
                "PreStartContainer", self.pre_start, "PreStartContainerRequest"
            ),
            "GetPreferredAllocation": self.unary(
                "GetPreferredAllocation", self.preferred, "PreferredAllocationRequest"
            ),
        }
        if self.given.deallocate:
            found["Deallocate"] = self.unary("Deallocate", self.deallocate, "DeallocateRequest")
        return found

    # How it is found.

    def run(self) -> None:
        registered: tuple[int, int] | None = None
        own, kubelet = self.given.directory / self.name, self.given.directory / "kubelet.sock"
        while True:
            if not self.given.directory.is_dir():
                time.sleep(LOOK_SECONDS)
                continue
            if self.inode is None or identity(own) is None:
                self.serve(own)
                registered = None
            found = identity(kubelet)
            again = registered is None or not self.given.register_once
            if found and found != registered and again and self.register(kubelet):
                registered = found
            time.sleep(LOOK_SECONDS)

    def serve(self, own: Path) -> None:
        """In place of a socket that is gone, or left over from a process of before."""
        if self.server:
            self.ended.set()
            # It deletes the name of its socket when it ends.
            self.server.stop(None).wait()
        self.ended = threading.Event()
        self.server = grpc.server(ThreadPoolExecutor(16))
        handler = grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", self.methods())
        self.server.add_generic_rpc_handlers([handler])
        own.unlink(missing_ok=True)
        self.server.add_insecure_port(f"unix:{own}")
        self.server.start()
        self.inode = own.stat().st_ino

    def register(self, kubelet: Path) -> bool:
        request = API["RegisterRequest"](
            version=self.given.version,
            endpoint=self.name,
            resource_name=self.given.resource,
            options=self.options,
        )
        with grpc.insecure_channel(f"unix:{kubelet}") as channel:
            register: Any = channel.unary_unary("/v1beta1.Registration/Register")
            try:
                register(request.SerializeToString(), timeout=10)
            except grpc.RpcError as error:
                self.called("Register", ok=False, error=error.details())
                return False
        self.called("Register", ok=True, error="")
        return True


def parsed(text: str) -> tuple[str, list[int]]:
    """ID@NUMA[,NUMA]; IDs have colons and slashes, NUMA nodes may be missing."""
    id_, at, nodes = text.rpartition("@")
    return (id_, [int(each) for each in nodes.split(",")]) if at else (text, [])


def identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


if __name__ == "__main__":
    try:
        DevicePluginProgram(arguments()).run()
    except KeyboardInterrupt:
        sys.exit(0)
