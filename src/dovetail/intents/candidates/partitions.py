"""Partition candidates, typed: where each app of a group can go, by one controller or all of them.

A candidate has a list of clusters for each app, such that any choice from those lists is good. One
is not enough where clusters are contended: then each contended cluster has several sets of apps
that fit there together, and a candidate takes one of them for each. They are kept as these factors
and expanded lazily: k contended clusters with two choices each make 2^k candidates.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dovetail.intents.candidates.cluster_set import EVERYWHERE, ClusterSet
from dovetail.intents.names import ClusterName


class Part(msgspec.Struct, frozen=True):
    """`count` different clusters of a set."""

    count: int
    clusters: ClusterSet


class AppClusters(msgspec.Struct, frozen=True, kw_only=True):
    """Where one app can go. Its parts get different clusters."""

    parts: tuple[Part, ...]
    is_counted: bool = True
    """Whether the controller says how many; if none does, it is one. The largest one said wins."""
    preference: tuple[ClusterSet, ...] = ()
    """Earlier sets first, whatever the score; what is in none comes last."""


ANYWHERE = AppClusters(parts=(Part(1, EVERYWHERE),), is_counted=False)


class ContendedCluster(msgspec.Struct, frozen=True):
    """A cluster where apps of the group are in each other's way.

    Mostly it takes some of the apps that could go there, but not all at once. It is one as well if
    it takes all of them, but gives them less together than each alone (an optional GPU that two of
    them want): then there is one set. The pick asks for the joint score of these clusters only.
    """

    cluster: ClusterName
    fitting: tuple[frozenset[str], ...]
    """The largest sets of apps that fit together; with a set, all its subsets fit. In order: sets
    that serve the apps listed first come first. Apps that are in none of them are not contended
    here; whether they can go here is what their lists say."""
    why: str = ""
    """Who is in whose way, for what: `fwall+analytics: cpu`."""


class PartitionCandidates(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller answers: one candidate for each alternative and each choice of the
    contended clusters."""

    alternatives: tuple[Mapping[str, AppClusters], ...]
    """By app; an app that is not there can go anywhere. Contended clusters are in the lists of all
    apps that could go there."""
    contended: tuple[ContendedCluster, ...] = ()
    """In the order of their names."""
    is_complete: bool = True
    """False: there may be more candidates; to find all would have taken too long."""


class AppCompatibility(msgspec.Struct, frozen=True, kw_only=True):
    """The app-to-app form: which apps may, or must, share a cluster."""

    denied: frozenset[tuple[str, str]] = frozenset()
    """Pairs that must not, each in the order of their names."""
    required: frozenset[tuple[str, str]] = frozenset()
    """(app, other): wherever the app is, the other has to be."""


Candidates = PartitionCandidates | AppCompatibility


class ClusterRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why an app cannot go to a cluster, by one controller."""

    token: str
    """Stable, for programs."""
    words: str


class ControllerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All that one placement controller says about a group."""

    controller: str
    candidates: Candidates
    scores: Mapping[str, Mapping[ClusterName, int]] = {}
    """By app and cluster, more is better; what is not there is 0."""
    refusals: Mapping[str, Mapping[ClusterName, ClusterRefusal]] = {}
    """By app and cluster, where it knows why not."""
    is_last_known: bool = False
    """It did not answer in time, and by its policy this is what it said before."""
