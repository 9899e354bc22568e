"""`dovetail explain pod`: tells the way from a pod's classes to the devices in its containers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from dovetail.cli.support import exits
from dovetail.cli.support.exits import LocalFailure, NoPermission, RequestRefused, ServerUnreachable
from dovetail.cli.support.output import output_option, paint, printable, show
from dovetail.core.errors import DovetailError

if TYPE_CHECKING:
    from dovetail.kube.classes.pod_chain import GivenDevice, PodChain

NOBODY = (401, 403)


@click.command("pod")
@click.argument("name")
@click.option("-n", "--namespace", default="default", show_default=True, help="Of the pod.")
@click.option("--kubeconfig", metavar="FILE", help="How to reach the API server.")
@output_option
def pod(name: str, namespace: str, kubeconfig: str | None, form: str) -> None:
    """Say which devices a pod of a Kubernetes cluster got, and how they come into its containers.

    From the classes that it asks for: the devices, by which claim or plugin they come in, what else
    it was given on its node, or where that ended and why. NAME may be namespace/name. Exits with 1
    if it ended somewhere.
    """
    if "/" in name:
        namespace, _, name = name.partition("/")
    chain = read(name, namespace, kubeconfig)
    show(form, msgspec.to_builtins(chain), lambda: lines(chain))
    if chain.stopped is not None:
        sys.exit(exits.NO)


def read(name: str, namespace: str, kubeconfig: str | None) -> PodChain:
    from dovetail.kube.api.client import connect
    from dovetail.kube.api.port import ApiError, ApiUnreachable
    from dovetail.kube.classes.pod_chain import read_chain

    async def found() -> PodChain:
        async with connect(kubeconfig, agent="dovetail-explain") as api:
            return await read_chain(api, name, namespace)

    try:
        return asyncio.run(found())
    except ApiUnreachable as error:
        raise ServerUnreachable(str(error)) from error
    except ApiError as error:
        kind = NoPermission if error.code in NOBODY else RequestRefused
        raise kind(str(error)) from error
    except DovetailError as error:
        raise LocalFailure(str(error)) from error


def lines(chain: PodChain) -> Iterator[str]:
    where = f" on node {printable(chain.node)}" if chain.node else ""
    yield f"{printable(chain.pod)}: {chain.phase or 'Pending'}{where}"
    if not chain.asked:
        yield "  asks for no resource class"
    for each in chain.asked:
        words = f"{each.container} asks for {each.units} of class {each.class_name}"
        yield f"  {printable(words)}"
        for device in chain.devices:
            if (device.container, device.class_name) == (each.container, each.class_name):
                yield f"    {printable(words_of(device))}"
    if chain.claim is not None:
        told = ", ".join(chain.claim.devices) or "nothing"
        trouble = f" ({chain.claim.trouble})" if chain.claim.trouble else ""
        yield printable(f"  ResourceClaim {chain.claim.name} has {told}{trouble}")
    if chain.given:
        yield f"  given on the node: {printable(chain.given)}"
    for name, state in chain.containers.items():
        yield f"  container {printable(name)}: {printable(state)}"
    for note in chain.notes:
        yield f"  {printable(note)}"
    if chain.stopped is not None:
        where = paint(f"stopped at {chain.stopped.where}", "red")
        yield f"  {where}: {printable(chain.stopped.why)}"


def words_of(device: GivenDevice) -> str:
    units = f" ({device.units})" if device.units > 1 else ""
    known = {key: value for key, value in device.properties.items() if key != "id"}
    told = [f"ID {device.id}"] if device.id else []
    told += [f"{key}={value}" for key, value in sorted(known.items())]
    if not device.is_there:
        told.append("no longer there")
    elif not device.healthy:
        told.append("not healthy")
    about = f" [{', '.join(told)}]" if told else ""
    comma = "," if device.way.startswith("which") else ""
    return f"-> {device.device}{units}{comma} {device.way}{about}"
