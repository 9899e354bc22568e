"""What an installation may choose, put into the manifests; `dovetail manifests` asks for it.

Manifests are files that can be applied as they are. What is chosen differently takes the place of
what is written there, as text, so that comments stay; only the Deployment of a scheduler that is to
serve the extender is written anew, for that changes its shape.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import yaml

NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
BUILT_IN_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
"""Kubernetes makes them itself, and their pods need not keep to the rules of ours."""

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"[a-zA-Z0-9](?:[-.a-zA-Z0-9]*[a-zA-Z0-9])?(?::[0-9]{1,5})?"
IMAGE = re.compile(
    rf"(?=.{{1,400}}\Z)(?:{_HOST}/)?{_PART}(?:/{_PART})*"
    r"(?::[a-zA-Z0-9_][-.a-zA-Z0-9_]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
"""A reference as container engines read it: [HOST[:PORT]/]PATH[:TAG][@DIGEST]."""

EXTENDER = "dovetail-extender"
"""Of the Service and of the Secret with the extender's certificates."""
EXTENDER_CLIENT = "dovetail-extender-client"
"""Of the Secret with what kube-scheduler needs to ask it."""
EXTENDER_PORT = 8888
CERTIFICATES = "/etc/dovetail/extender"
CLASS_GROUP = "resourceclass.dovetail.dev"


class Installation(msgspec.Struct, frozen=True):
    namespace: str = "dovetail"
    image: str = "dovetail"
    replicas: int = 2
    address: str | None = None
    """`HOST:PORT` by which kube-scheduler reaches the extender; None for the Service's name."""
    classes: tuple[str, ...] = ()
    """Those that kube-scheduler asks the extender about; none for all, and about all pods."""
    resources: tuple[str, ...] = ()
    """Of device plugins: pods that want them directly are asked about as well."""

    @property
    def extender_hosts(self) -> tuple[str, ...]:
        """The names of the Service."""
        name = f"{EXTENDER}.{self.namespace}.svc"
        return (name, f"{name}.cluster.local")


def rendered(text: str, chosen: Installation, *, serves_extender: bool) -> str:
    """One of the files, with what is chosen in it."""
    documents = [_with_choices(each, chosen) for each in text.split("---\n")]
    if chosen.namespace in BUILT_IN_NAMESPACES:
        documents = [each for each in documents if "kind: Namespace\n" not in each]
    if serves_extender:
        documents = [_with_extender(each) for each in documents]
    return "---\n".join(documents)


def _with_choices(document: str, chosen: Installation) -> str:
    space, image = _scalar(chosen.namespace), _scalar(chosen.image)
    for written, wanted in (
        (r"(namespace: )dovetail(?![-\w])", space),
        (r"(kind: Namespace\nmetadata:\n  name: )dovetail(?=\n)", space),
        (r"(values: \[)dovetail(?=\])", space),
        (r"( -n )dovetail(?= )", chosen.namespace),
        (r"(dovetail-extender\.)dovetail(?=\.svc)", chosen.namespace),
        (r"(\n +image: )dovetail(?=\n)", image),
        (r"(\n  replicas: )2(?=\n)", str(chosen.replicas)),
    ):
        document = re.sub(written, rf"\g<1>{wanted}", document)
    return document


def _scalar(value: str) -> str:
    """As YAML has it: a namespace may be called 123, or no."""
    return value if yaml.safe_load(value) == value else f'"{value}"'


def _with_extender(document: str) -> str:
    """The Deployment, with flags, port and certificates; others as they are."""
    if "\nkind: Deployment\n" not in document:
        return document
    found: dict[str, Any] = yaml.safe_load(document)
    pod = found["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container["args"] += [
        *("--extender-listen", f"0.0.0.0:{EXTENDER_PORT}"),
        *("--extender-cert", f"{CERTIFICATES}/tls.crt"),
        *("--extender-key", f"{CERTIFICATES}/tls.key"),
        *("--extender-client-ca", f"{CERTIFICATES}/ca.crt"),
    ]
    container["ports"].append({"name": "extender", "containerPort": EXTENDER_PORT})
    container["volumeMounts"] = [{"name": "extender", "mountPath": CERTIFICATES, "readOnly": True}]
    pod["volumes"] = [{"name": "extender", "secret": {"secretName": EXTENDER}}]
    return yaml.safe_dump(found, sort_keys=False, width=120)


def kube_scheduler_configuration(text: str, chosen: Installation) -> str:
    """The file of kube-scheduler's settings, with whom to ask and about which resources."""
    text = _with_choices(text, chosen)
    if chosen.address is not None:
        text = re.sub(r"(urlPrefix: https://)\S+", rf"\g<1>{chosen.address}", text)
    if not chosen.classes:
        return text + _ASKED_ABOUT_ALL
    return text + "    managedResources:\n" + "".join(managed_resources(chosen))


_ASKED_ABOUT_ALL = f"""\
# It is asked about every pod. Classes are no resources of nodes: it alone counts them.
profiles:
  - pluginConfig:
      - name: NodeResourcesFit
        args: {{ignoredResourceGroups: [{CLASS_GROUP}]}}
"""


def managed_resources(chosen: Installation) -> Sequence[str]:
    return [
        *(
            f"      - {{name: {CLASS_GROUP}/{name}, ignoredByScheduler: true}}\n"
            for name in chosen.classes
        ),
        *(f"      - {{name: {name}}}\n" for name in chosen.resources),
    ]
