"""The document store under concurrency, on both databases: no rule breaks between two writers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from dovetail.core.errors import DovetailError, InUse, NotFound
from dovetail.intents.documents.kinds import KINDS
from dovetail.ledger import Ledger, Transaction, open_ledger
from dovetail.ledger.intents import objects
from dovetail.service.intents import objects as store
from dovetail.service.intents.objects import SentDocument
from dovetail.service.intents.ports import KeptObject, WrongState

ROUNDS = 25
APPS = "projects/p/composite-apps/c/v1/apps"
GROUP = "projects/p/composite-apps/c/v1/deployment-intent-groups/g"


def sent(kind: str, parent: str | None, *names: str, **spec: Any) -> SentDocument:
    document: dict[str, Any] = {"metadata": {"name": names[0]}}
    if spec:
        document["spec"] = spec
    path = KINDS[kind].path_below(parent, names)
    return SentDocument(kind=KINDS[kind], path=path, parent=parent, document=document)


def create(ledger: Ledger, document: SentDocument) -> None:
    ledger.write(lambda tx: store.create(tx, {}, document)).result()


def drop(ledger: Ledger, kind: str, path: str) -> None:
    ledger.write(lambda tx: store.drop(tx, {}, KINDS[kind], path)).result()


def outcome(act: Callable[[], None]) -> str:
    try:
        act()
    except DovetailError as error:
        return type(error).__name__
    return "done"


def at_once(*acts: Callable[[], None]) -> list[str]:
    """How each ends if all begin together."""
    gate = threading.Barrier(len(acts))

    def run(act: Callable[[], None]) -> str:
        gate.wait()
        return outcome(act)

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


@pytest.fixture
def others(database_url: str, ledger: Ledger) -> Any:
    """Another server process, as far as the database can tell."""
    opened = open_ledger(database_url)
    yield opened
    opened.close()


def test_of_two_who_make_the_same_one_does(ledger: Ledger, others: Ledger) -> None:
    for number in range(ROUNDS):
        document = sent("project", None, f"p{number}")
        ends = at_once(*(partial(create, one, document) for one in (ledger, others, ledger)))
        assert Counter(ends) == {"done": 1, "ObjectExists": 2}


def test_nothing_arrives_below_what_goes(ledger: Ledger, others: Ledger) -> None:
    """Either the child is refused, or its parent stays."""
    for number in range(ROUNDS):
        create(ledger, sent("project", None, "p"))
        child = sent("composite-app", "projects/p", "c", "v1", compositeAppVersion="v1")
        made, gone = at_once(
            partial(create, ledger, child), partial(drop, others, "project", "projects/p")
        )
        assert (made, gone) in {("done", "HasChildren"), ("ParentNotFound", "done")}, number
        if made == "done":
            drop(ledger, "composite-app", child.path)
            drop(ledger, "project", "projects/p")
        assert ledger.read(lambda tx: objects.of_kind(tx, "composite-app")).result() == []


def test_nothing_goes_while_somebody_begins_to_refer_to_it(ledger: Ledger, others: Ledger) -> None:
    create(ledger, sent("project", None, "p"))
    create(ledger, sent("composite-app", "projects/p", "c", "v1", compositeAppVersion="v1"))
    composite = "projects/p/composite-apps/c/v1"
    group = {"compositeProfile": "f", "version": "r", "logicalCloud": "l"}
    create(ledger, sent("deployment-intent-group", composite, "g", **group))
    intent = sent("hpa-intent", GROUP, "i", app="a")
    seen = set()
    for _ in range(ROUNDS):
        create(ledger, sent("app", composite, "a"))
        made, gone = at_once(
            partial(create, ledger, intent), partial(drop, others, "app", f"{APPS}/a")
        )
        assert made == "done"
        seen.add(gone)
        drop(ledger, "hpa-intent", intent.path)
        if gone == "IsReferenced":
            drop(ledger, "app", f"{APPS}/a")
    assert seen <= {"done", "IsReferenced"}


def test_siblings_made_at_once_have_places_of_their_own(ledger: Ledger, others: Ledger) -> None:
    create(ledger, sent("cluster-provider", None, "p"))
    clusters = [sent("cluster", "cluster-providers/p", f"c{number}") for number in range(12)]
    ends = at_once(
        *(
            partial(create, one, each)
            for each, one in zip(clusters, [ledger, others] * 6, strict=True)
        )
    )
    assert ends == ["done"] * 12
    found = ledger.read(lambda tx: objects.listing(tx, "cluster-providers/p", "cluster")).result()
    assert sorted(each.position for each in found) == list(range(1, 13))


def test_what_a_hook_raises_undoes_everything(ledger: Ledger) -> None:
    class Hook:
        def kept(self, _tx: Transaction, written: KeptObject) -> None:
            raise WrongState(f"not {written.path}")

        def dropping(self, _tx: Transaction, path: str) -> None:
            raise WrongState(f"not {path}")

    hooks = {"project": Hook()}
    document = sent("project", None, "p")
    with pytest.raises(WrongState):
        ledger.write(lambda tx: store.create(tx, hooks, document)).result()
    with pytest.raises(NotFound):
        ledger.read(lambda tx: store.get(tx, KINDS["project"], "projects/p")).result()
    create(ledger, document)
    with pytest.raises(WrongState):
        ledger.write(lambda tx: store.drop(tx, hooks, KINDS["project"], "projects/p")).result()
    ledger.read(lambda tx: store.get(tx, KINDS["project"], "projects/p")).result()


def test_a_hook_sees_files_that_are_not_kept(ledger: Ledger) -> None:
    seen: list[KeptObject] = []

    class Hook:
        def kept(self, _tx: Transaction, written: KeptObject) -> None:
            seen.append(written)

        def dropping(self, _tx: Transaction, _path: str) -> None: ...

    create(ledger, sent("cluster-provider", None, "p"))
    document = sent("cluster", "cluster-providers/p", "c")
    with_files = SentDocument(
        kind=document.kind,
        path=document.path,
        parent=document.parent,
        document=document.document,
        files={"kubeconfig": b"k"},
        passing={"snapshot": b"{}"},
    )
    ledger.write(lambda tx: store.create(tx, {"cluster": Hook()}, with_files)).result()
    assert [each.files for each in seen] == [{"kubeconfig": b"k", "snapshot": b"{}"}]
    kept = ledger.read(lambda tx: objects.files(tx, [document.path])).result()
    assert kept == {(document.path, "kubeconfig"): b"k"}


def test_a_subtree_is_all_that_is_below_and_nothing_beside(ledger: Ledger) -> None:
    for name in ("p", "p0", "p-1", "pp"):
        create(ledger, sent("project", None, name))
        parent = f"projects/{name}"
        create(ledger, sent("composite-app", parent, "c", "v1", compositeAppVersion="v1"))
    below = ledger.read(lambda tx: objects.subtree(tx, "projects/p")).result()
    assert [each.path for each in below] == ["projects/p/composite-apps/c/v1"]


def test_a_collection_is_cleared_as_a_whole_or_not_at_all(ledger: Ledger) -> None:
    for name in ("a", "b"):
        create(ledger, sent("cluster-provider", None, name))
    create(ledger, sent("cluster", "cluster-providers/b", "c"))
    with pytest.raises(InUse):
        ledger.write(lambda tx: store.clear(tx, {}, KINDS["cluster-provider"], None)).result()
    listed = ledger.read(lambda tx: objects.listing(tx, None, "cluster-provider")).result()
    assert [each.name for each in listed] == ["a", "b"]
