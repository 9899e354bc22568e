"""`dovetail manifests`: what is installed in a Kubernetes cluster, for `kubectl apply`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import click

from dovetail.cli.support.output import printing, table
from dovetail.config.listening import host_and_port
from dovetail.devices.classes.documents import DNS_SUBDOMAIN
from dovetail.kube.manifests import KUBE_SCHEDULER, OPTIONAL_PARTS, PARTS, text
from dovetail.kube.manifests.installation import IMAGE, NAMESPACE, Installation

CERTIFICATES = "extender-certificates"
MADE_PARTS = {
    CERTIFICATES: "Secrets with certificates of extender and kube-scheduler, new ones each time",
}
"""Those that are in no file."""
EVERY_PART = PARTS | OPTIONAL_PARTS | MADE_PARTS
DEFAULT = Installation()
MOST_REPLICAS = 100
RESOURCE = re.compile(rf"{DNS_SUBDOMAIN.pattern}/[A-Za-z0-9](?:[-_.A-Za-z0-9]{{0,61}}[A-Za-z0-9])?")
"""Of a device plugin: a domain and a name."""

Check = Callable[[click.Context, click.Parameter, str], str]
Checks = Callable[[click.Context, click.Parameter, tuple[str, ...]], tuple[str, ...]]


def of_form(pattern: re.Pattern[str], words: str) -> Check:
    def check(_context: click.Context, _parameter: click.Parameter, given: str) -> str:
        if pattern.fullmatch(given) is None:
            raise click.BadParameter(f"{given!r} is not {words}")
        return given

    return check


def all_of_form(pattern: re.Pattern[str], words: str) -> Checks:
    check = of_form(pattern, words)
    return lambda context, parameter, given: tuple(check(context, parameter, x) for x in given)


def address(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    found = host_and_port(given) if given is not None else None
    if given is not None and (found is None or not re.fullmatch(r"[-.:\w]+", found[0], re.ASCII)):
        raise click.BadParameter(f"{given!r} is not HOST:PORT, such as 10.96.0.20:8888")
    return given


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(tuple(EVERY_PART)), metavar="[PART]...")
@click.option("--list", "listing", is_flag=True, help="Only say which parts there are.")
@click.option(
    "--namespace",
    default=DEFAULT.namespace,
    show_default=True,
    callback=of_form(NAMESPACE, "a name of a namespace: lower case, digits and hyphens, up to 63"),
    help="Where all of it goes, rights and addresses included.",
)
@click.option(
    "--image",
    default=DEFAULT.image,
    show_default=True,
    callback=of_form(IMAGE, "an image, such as registry.example/dovetail:1.0"),
    help="What the replicas run.",
)
@click.option(
    "--replicas",
    default=DEFAULT.replicas,
    show_default=True,
    type=click.IntRange(1, MOST_REPLICAS),
    help="Of each Deployment.",
)
@click.option(
    "--extender-address",
    metavar="HOST:PORT",
    callback=address,
    help="How kube-scheduler reaches the extender, if not by the name of its Service.",
)
@click.option(
    "--class",
    "classes",
    multiple=True,
    callback=all_of_form(DNS_SUBDOMAIN, "a name of a resource class"),
    help="kube-scheduler asks the extender about pods of this class; may be repeated. Without, "
    "about every pod.",
)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    callback=all_of_form(RESOURCE, "an extended resource, such as nvidia.com/gpu"),
    help="And about pods that want this resource of a device plugin directly; may be repeated.",
)
def manifests(
    parts: tuple[str, ...],
    *,
    listing: bool,
    namespace: str,
    image: str,
    replicas: int,
    extender_address: str | None,
    classes: tuple[str, ...],
    resources: tuple[str, ...],
) -> None:
    """Print what Kubernetes needs to know.

    All of it but what is optional, or these parts of it:

    \b
    dovetail manifests crds scheduler --image HOST/dovetail:1 | kubectl apply --server-side -f -
    """
    if KUBE_SCHEDULER in parts and set(parts) != {KUBE_SCHEDULER} and not listing:
        raise click.UsageError(f"{KUBE_SCHEDULER} is a file of kube-scheduler: print it alone")
    if resources and not classes:
        raise click.UsageError("--resource: without --class every pod is asked about anyway")
    chosen = Installation(namespace, image, replicas, extender_address, classes, resources)
    named = dict.fromkeys(parts or (EVERY_PART if listing else PARTS))
    with printing():
        if listing:
            for line in table(("PART", "HOLDS"), [(each, EVERY_PART[each]) for each in named]):
                click.echo(line)
        else:
            click.echo(printed(tuple(named), chosen), nl=False)


def printed(parts: tuple[str, ...], chosen: Installation) -> str:
    files = tuple(each for each in parts if each not in MADE_PARTS)
    found = [text(files, chosen)] if files else []
    if CERTIFICATES in parts:
        # Only here are keys made, and the library for that read.
        from dovetail.kube.extender.certificates import certificates_text

        found.append(certificates_text(chosen, datetime.now(UTC)))
    return "---\n".join(found)
