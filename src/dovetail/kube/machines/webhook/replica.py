"""The webhook of one replica: its certificate, kept up to date, and the server; the daemon runs it.

Every replica answers alike. Where the operator manages the certificates itself, its leader renews
them.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

from dovetail.aio.supervise import run_together
from dovetail.config.listening import host_and_port
from dovetail.config.values import BadSettings
from dovetail.kube.api.port import KubeApi
from dovetail.kube.machines.operator import OperatorReplica
from dovetail.kube.machines.settings import WebhookSettings
from dovetail.kube.machines.webhook.app import application
from dovetail.kube.machines.webhook.certificates import Secret
from dovetail.kube.machines.webhook.review import Reviewer
from dovetail.kube.machines.webhook.rotation import CertificateRotation
from dovetail.kube.machines.webhook.tls import ServedCertificate
from dovetail.kube.runtime.informer import Informer
from dovetail.kube.runtime.serving import listen, serve

LINGER_SECONDS = 5.0


class WebhookReplica:
    def __init__(self, api: KubeApi, operator: OperatorReplica, settings: WebhookSettings) -> None:
        """Raises BadSettings, BadListening."""
        self._api = api
        self._operator = operator
        self._settings = settings
        self._files = files_of(settings)
        self._certificate = ServedCertificate()
        if self._files is not None:
            self._certificate.load_files(*self._files)
        self._bound = listen(*address_of(settings))

    @property
    def is_ready(self) -> bool:
        """Whether it answers."""
        return self._operator.is_ready and self._certificate.is_loaded

    async def run(self) -> None:
        """Until cancelled; nothing is answered before the cluster is known."""
        with closing(self._bound):
            await self._operator.known()
            if self._files is not None:
                await run_together(self._certificate.follow_files(*self._files), self._serve())
            else:
                await run_together(self._follow_secret(), self._renew(), self._serve())

    async def linger(self) -> None:
        """When the operator has ended: whoever sends calls here takes a moment to hear of it, and
        what the informers told last is good enough until then."""
        await asyncio.sleep(LINGER_SECONDS)

    async def _serve(self) -> None:
        await self._certificate.until_loaded()
        app = application(Reviewer(self._operator.state))
        await serve(app, self._bound, self._certificate.context)

    async def _follow_secret(self) -> None:
        where = f"metadata.name={self._settings.name}"
        secret = Informer(self._api, Secret, self._namespace, fields=where)
        secret.on(self._certificate.on_secret)
        await secret.run()

    async def _renew(self) -> None:
        name = self._settings.name
        rotation = CertificateRotation(
            self._api,
            self._namespace,
            name,
            (*service_hosts(name, self._namespace), *self._settings.hosts),
        )
        await rotation.run(self._renews)

    def _renews(self) -> bool:
        """The leader does; and who has none to serve, for a leader from before the webhook was
        asked for, which stays until this replica is ready, makes no certificates."""
        return self._operator.leader.leading or not self._certificate.is_loaded

    @property
    def _namespace(self) -> str:
        return self._operator.state.settings.namespace


def service_hosts(name: str, namespace: str) -> tuple[str, str]:
    """By which the API server, and others in the cluster, call a Service."""
    return f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local"


def address_of(settings: WebhookSettings) -> tuple[str, int]:
    found = host_and_port(settings.listen or "")
    if found is None:
        raise BadSettings(
            f"--webhook-listen: {settings.listen!r} is not HOST:PORT, such as 0.0.0.0:9443"
        )
    return found


def files_of(settings: WebhookSettings) -> tuple[Path, Path] | None:
    """Certificate chain and key; None where the operator manages them itself."""
    if settings.certificates == "files":
        if settings.cert is None or settings.key is None:
            raise BadSettings("--webhook-certificates files: needs --webhook-cert and -key")
        return Path(settings.cert), Path(settings.key)
    if settings.cert is not None or settings.key is not None:
        raise BadSettings("--webhook-cert, --webhook-key: are for --webhook-certificates files")
    return None
