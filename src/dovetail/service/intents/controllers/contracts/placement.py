"""`dovetail.intents.v1`: what a placement controller is asked, and what it answers.

The text of the proto is in docs/writing-a-controller.md, for those who write controllers in other
languages.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method

SERVICE = "dovetail.intents.v1.PlacementController"


class App(Message):
    name: Annotated[str, 1] = ""
    objects: Annotated[tuple[str, ...], 2] = ()
    """Kubernetes objects after rendering, each as JSON."""


class Cluster(Message):
    name: Annotated[str, 1] = ""
    """`provider+cluster`."""
    labels: Annotated[tuple[str, ...], 2] = ()
    health: Annotated[str, 3] = ""
    """`ready`, `stale`, `away` or `unknown`."""
    observed_at: Annotated[int, 4] = 0
    """When that was true, in Unix seconds."""


class CandidatesRequest(Message):
    group: Annotated[str, 1] = ""
    """`projects/P/composite-apps/C/V/deployment-intent-groups/G`."""
    intent: Annotated[str, 2] = ""
    """What the group's `intents` map says for this controller."""
    apps: Annotated[tuple[App, ...], 3] = ()
    """In their order: who comes first is served first."""
    clusters: Annotated[tuple[Cluster, ...], 4] = ()
    """All that there are, in the order of their names."""


class ClusterList(Message):
    names: Annotated[tuple[str, ...], 1] = ()
    denies: Annotated[bool, 2] = False
    """All clusters but those of `names`."""


class Part(Message):
    count: Annotated[int, 1] = 0
    """How many different clusters of the list; 0: the controller does not say."""
    clusters: Annotated[ClusterList, 2] = field(default_factory=ClusterList)


class AppClusters(Message):
    app: Annotated[str, 1] = ""
    parts: Annotated[tuple[Part, ...], 2] = ()
    """Each gets clusters of its own; mostly there is one."""
    preference: Annotated[tuple[ClusterList, ...], 3] = ()


class Candidate(Message):
    apps: Annotated[tuple[AppClusters, ...], 1] = ()
    """An app that is not there can go anywhere."""


class AppSet(Message):
    apps: Annotated[tuple[str, ...], 1] = ()


class ContendedCluster(Message):
    cluster: Annotated[str, 1] = ""
    fitting: Annotated[tuple[AppSet, ...], 2] = ()
    """The largest sets of apps that fit there together."""


class AppPair(Message):
    app: Annotated[str, 1] = ""
    other: Annotated[str, 2] = ""


class Compatibility(Message):
    denied: Annotated[tuple[AppPair, ...], 1] = ()
    """Must not share a cluster, whichever is named first."""
    required: Annotated[tuple[AppPair, ...], 2] = ()
    """Wherever `app` is, `other` has to be."""


class ClusterScore(Message):
    app: Annotated[str, 1] = ""
    cluster: Annotated[str, 2] = ""
    score: Annotated[int, 3] = 0


class ClusterReason(Message):
    app: Annotated[str, 1] = ""
    cluster: Annotated[str, 2] = ""
    token: Annotated[str, 3] = ""
    words: Annotated[str, 4] = ""


class CandidatesResponse(Message):
    """Either candidates or compatibility; neither is no answer."""

    candidates: Annotated[tuple[Candidate, ...], 1] = ()
    contended: Annotated[tuple[ContendedCluster, ...], 2] = ()
    compatibility: Annotated[Compatibility | None, 3] = None
    scores: Annotated[tuple[ClusterScore, ...], 4] = ()
    reasons: Annotated[tuple[ClusterReason, ...], 5] = ()
    is_cut: Annotated[bool, 6] = False
    """There may be more candidates; to find all would have taken too long."""


CANDIDATES = Method(SERVICE, "Candidates", CandidatesRequest, CandidatesResponse)
