"""SDK of placement controllers: a function from a question to an answer, served over gRPC.

    run(candidates, port=50061)

docs/writing-a-controller.md has a controller that is complete, and says what an answer means.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable
from functools import partial

from dovetail.service.intents.controllers.contracts.placement import (
    CANDIDATES,
    AppClusters,
    AppPair,
    Candidate,
    CandidatesRequest,
    CandidatesResponse,
    ClusterList,
    ClusterReason,
    ClusterScore,
    Compatibility,
    Part,
)
from dovetail.wire.client import TlsIdentity
from dovetail.wire.rpc import Served
from dovetail.wire.serving import serving


class CandidatesAnswer:
    """One candidate, app by app; of what nothing is said, anything goes."""

    def __init__(self) -> None:
        self._allowed: dict[str, set[str]] = {}
        self._denied: dict[str, set[str]] = {}
        self._counts: dict[str, int] = {}
        self._scores: list[ClusterScore] = []
        self._reasons: list[ClusterReason] = []
        self._compatibility = Compatibility()

    def allow(self, app: str, clusters: Iterable[str]) -> None:
        """The app goes to these alone; said again, to those of either time."""
        self._allowed.setdefault(app, set()).update(clusters)

    def deny(self, app: str, clusters: Iterable[str]) -> None:
        """The app goes to none of these, whatever is allowed."""
        self._denied.setdefault(app, set()).update(clusters)

    def refuse(self, app: str, cluster: str, words: str, token: str = "") -> None:
        """The app does not go there, and this is why: users are shown the words."""
        self.deny(app, (cluster,))
        self._reasons.append(ClusterReason(app=app, cluster=cluster, token=token, words=words))

    def count(self, app: str, clusters: int) -> None:
        """To how many clusters the app goes; of several controllers, the largest count wins."""
        self._counts[app] = clusters

    def score(self, app: str, cluster: str, points: int) -> None:
        """How good the app is there: the pick has the highest sum over all controllers."""
        self._scores.append(ClusterScore(app=app, cluster=cluster, score=points))

    def keep_apart(self, app: str, other: str) -> None:
        """The two must not share a cluster."""
        self._compatibility.denied += (AppPair(app=app, other=other),)

    def require(self, app: str, other: str) -> None:
        """Wherever the app is, the other has to be."""
        self._compatibility.required += (AppPair(app=app, other=other),)

    def message(self) -> CandidatesResponse:
        """Raises ValueError for an answer in both forms: a controller gives one of them."""
        said = {*self._allowed, *self._denied, *self._counts}
        told = CandidatesResponse(scores=tuple(self._scores), reasons=tuple(self._reasons))
        if self._compatibility.denied or self._compatibility.required:
            if said:
                raise ValueError("an answer is about clusters or about apps, not about both")
            told.compatibility = self._compatibility
        else:
            told.candidates = (Candidate(apps=tuple(map(self._app, sorted(said)))),)
        return told

    def _app(self, app: str) -> AppClusters:
        denied = self._denied.get(app, set())
        allowed = self._allowed.get(app)
        names = denied if allowed is None else allowed - denied
        clusters = ClusterList(names=tuple(sorted(names)), denies=allowed is None)
        return AppClusters(app=app, parts=(Part(self._counts.get(app, 0), clusters),))


Decide = Callable[[CandidatesRequest], CandidatesAnswer | CandidatesResponse]
"""Several candidates, contended clusters and preferences are in the message itself."""


def run(
    decide: Decide, *, port: int, host: str = "127.0.0.1", identity: TlsIdentity | None = None
) -> None:
    """Serve the controller until SIGTERM or SIGINT: all that its process needs to do.

    `decide` is called in a thread for each question. Port 0 is any that is free: it is printed.
    """
    asyncio.run(_serve_until_signal(decide, host, port, identity))


async def _serve_until_signal(
    decide: Decide, host: str, port: int, identity: TlsIdentity | None
) -> None:
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    served = Served(CANDIDATES, partial(answered, decide))
    async with serving(host, port, [served], identity) as bound:
        print(f"serving at {host}:{bound}", flush=True)  # noqa: T201
        await stop.wait()


async def answered(decide: Decide, question: CandidatesRequest) -> CandidatesResponse:
    found = await asyncio.to_thread(decide, question)
    return found.message() if isinstance(found, CandidatesAnswer) else found
