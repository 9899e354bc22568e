"""JSON encoder of allocation candidates, made of templates: each part is written once.

GET /allocation_candidates and what-if questions are answered with it. An answer can hold tens of
thousands of candidates that hardly differ. So their common text is written once per answer, a
tree's summaries once per change of the tree, and what is left per candidate is filling in UUIDs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from dovetail.engine import Search, Snapshot
from dovetail.engine.combine.round_robin import Block
from dovetail.engine.feasible import Slot
from dovetail.rest.server.http import Version
from dovetail.service.asking import unranked_trees

TemplateDraft = tuple[str, list[int]]

SUMMARY_CACHE_BYTES = 64 * 2**20
"""Summaries of trees kept for the next answer."""

VALUES_AT_ONCE = 8_192
"""UUIDs that are filled in at a time."""

GAP = " " * 36
"""Where a UUID goes; nothing else in a candidate has spaces."""


REQUESTS, SUMMARIES, END = b'{"allocation_requests":[', b'],"provider_summaries":{', b"}}"
NO_CANDIDATES = REQUESTS + SUMMARIES + END

UNRANKED_TREES = "dovetail-unranked-trees"
"""Header of an answer whose ranking ran out of time: the trees left out, which may be better."""


class CandidateTemplate:
    """The text of a candidate with gaps for the UUIDs of its providers."""

    def __init__(self, text: str, slots: list[int]) -> None:
        """`slots` tells whose UUIDs they are, in the order of the gaps."""
        self._text = text.encode()
        self._slots = slots
        ends = np.cumsum([len(piece) + len(GAP) for piece in text.split(GAP)[:-1]])
        self._gaps = np.dtype(
            {
                "names": [str(number) for number in range(len(slots))],
                "formats": [f"S{len(GAP)}"] * len(slots),
                "offsets": (ends - len(GAP)).tolist(),
                "itemsize": len(self._text),
            }
        )

    def fill(self, uuids: NDArray[np.bytes_]) -> bytearray:
        """The text once for each line of UUIDs, which has one for each slot."""
        written = bytearray(self._text) * len(uuids)
        gaps = np.frombuffer(written, self._gaps)
        for number, slot in enumerate(self._slots):
            gaps[str(number)] = uuids[:, slot]
        return written

    def fill_singly(self, uuids: NDArray[np.bytes_]) -> list[bytes]:
        written, size = bytes(self.fill(uuids)), len(self._text)
        return [written[at : at + size] for at in range(0, len(written), size)]


class CandidateWriter:
    """Fills templates: candidates differ in little more than the UUIDs of their providers.

    What the text looks like depends only on which slots are on the same provider. So there is one
    template for candidates whose slots are all on different providers (almost all are), and one
    for each other way in which slots can coincide.
    """

    def __init__(
        self, search: Search, version: Version, scores: Sequence[Mapping[str, int]] = ()
    ) -> None:
        """With scores, each candidate tells its own."""
        self._search, self._version, self._scores = search, version, scores

    def requests(self, combinations: Block) -> Iterator[bytes | memoryview]:
        """Some candidates at a time, so that no step is long."""
        some = max(1, VALUES_AT_ONCE // combinations.shape[1])
        for start in range(0, len(combinations), some):
            if start:
                yield b","
            end = start + some
            yield self._requests(combinations[start:end], self._scores[start:end])

    def _requests(
        self, combinations: Block, all_scores: Sequence[Mapping[str, int]]
    ) -> bytes | memoryview:
        uuids = self._search.snapshot.uuids.values[combinations]
        firsts = first_on_same(combinations)
        samples, which = kinds_of(firsts)
        if len(samples) == 1 and not all_scores:
            return memoryview(self._template(firsts[0].tolist()).fill(uuids))[:-1]
        written = np.empty(len(combinations), object)
        for at, sample in enumerate(samples.tolist()):
            mine = np.flatnonzero(which == at)
            written[mine] = self._template(firsts[sample].tolist()).fill_singly(uuids[mine])
        if all_scores:
            pairs = zip(written.tolist(), all_scores, strict=True)
            return b",".join(with_scores(request, scores) for request, scores in pairs)
        return b"".join(written)[:-1]

    def _template(self, coinciding: list[int]) -> CandidateTemplate:
        """`coinciding`: for each slot the first slot that is on the same provider."""
        allocations, given = self._allocations(coinciding)
        mappings, mapped = self._mappings(coinciding)
        if self._version < 34:
            return CandidateTemplate(f'{{"allocations":{allocations}}},', given)
        return CandidateTemplate(
            f'{{"allocations":{allocations},"mappings":{mappings}}},', given + mapped
        )

    def _allocations(self, coinciding: list[int]) -> TemplateDraft:
        amounts: dict[int, dict[str, int]] = {}
        for at, slot in zip(coinciding, self._search.slots, strict=True):
            for name, amount in slot.resources.items():
                held = amounts.setdefault(at, {})
                held[name] = held.get(name, 0) + amount
        if self._version >= 12:
            shares = [f'"{GAP}":{{"resources":{text(held)}}}' for held in amounts.values()]
            return f"{{{','.join(shares)}}}", list(amounts)
        shares = [
            f'{{"resource_provider":{{"uuid":"{GAP}"}},"resources":{text(held)}}}'
            for held in amounts.values()
        ]
        return f"[{','.join(shares)}]", list(amounts)

    def _mappings(self, coinciding: list[int]) -> TemplateDraft:
        serving: dict[str, dict[int, None]] = {}
        for at, slot in zip(coinciding, self._search.slots, strict=True):
            serving.setdefault(slot.group.suffix, {})[at] = None
        mapped = []
        for suffix, places in serving.items():
            marks = ",".join([f'"{GAP}"'] * len(places))
            mapped.append(f"{text(suffix)}:[{marks}]")
        return f"{{{','.join(mapped)}}}", [at for places in serving.values() for at in places]


def with_scores(request: bytes, scores: Mapping[str, int]) -> bytes:
    """A request, which ends in a brace and a comma, with its scores before them."""
    return b'%s,"scores":%s}' % (request[:-2], orjson.dumps(scores))


def first_on_same(combinations: Block) -> Block:
    """For each slot of each combination the first slot that has the same row."""
    firsts = np.empty(combinations.shape, np.int32)
    for slot in range(combinations.shape[1]):
        same = combinations[:, : slot + 1] == combinations[:, slot, None]
        firsts[:, slot] = same.argmax(axis=1)
    return firsts


def kinds_of(firsts: Block) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """One line of each kind, and for every line which kind it is."""
    slots = firsts.shape[1]
    codes, bound = np.zeros(len(firsts), np.int64), 1
    for slot in range(slots):
        if bound > 2**62 // slots:
            _, codes = np.unique(codes, return_inverse=True)
            bound = len(firsts)
        codes = codes * slots + firsts[:, slot]
        bound *= slots
    if (codes == codes[0]).all():
        return np.zeros(1, np.intp), np.zeros(len(firsts), np.intp)
    _, samples, which = np.unique(codes, return_index=True, return_inverse=True)
    return samples, which


def text(value: object) -> str:
    return orjson.dumps(value).decode()


class SummaryWriter:
    """Summaries of providers, remembered per tree until the tree changes."""

    def __init__(self) -> None:
        self._summaries: OrderedDict[int, tuple[tuple[int, int], bytes]] = OrderedDict()
        self._size = 0

    def summaries(
        self,
        snapshot: Snapshot,
        slots: Sequence[Slot],
        combinations: Block,
        version: Version,
    ) -> Iterator[bytes]:
        """The providers of every tree that gives something; before 1.29 only those that give."""
        last = b""
        for text in self._texts(snapshot, slots, combinations, version):
            yield last
            last = text
        yield last[:-1]

    def _texts(
        self, snapshot: Snapshot, slots: Sequence[Slot], combinations: Block, version: Version
    ) -> Iterator[bytes]:
        """Of each provider or tree, with a comma after it."""
        giving = combinations[:, [at for at, slot in enumerate(slots) if slot.resources]]
        if version < 29:
            asked = {name for slot in slots for name in slot.resources}
            for row in np.unique(giving).tolist():
                yield providers_json(snapshot, range(row, row + 1), version, asked)
        else:
            given = np.zeros(snapshot.tree_size.size, np.bool_)
            given[snapshot.tree.values[giving]] = True
            trees = np.flatnonzero(given)
            roots = snapshot.tree_root_id.values[trees].tolist()
            changes = snapshot.tree_version.values[trees].tolist()
            for tree, root, change in zip(trees.tolist(), roots, changes, strict=True):
                yield self._tree(snapshot, tree, root, (snapshot.names_version, change))

    def _tree(self, snapshot: Snapshot, tree: int, root: int, change: tuple[int, int]) -> bytes:
        kept = self._summaries.get(root)
        if kept is not None and kept[0] == change:
            return kept[1]
        text = providers_json(snapshot, snapshot.rows_of(tree), 29)
        self._size += len(text) - (len(kept[1]) if kept else 0)
        self._summaries[root] = (change, text)
        self._summaries.move_to_end(root)
        while self._size > SUMMARY_CACHE_BYTES:
            _, (_, dropped) = self._summaries.popitem(last=False)
            self._size -= len(dropped)
        return text


def providers_json(
    snapshot: Snapshot, rows: range, version: Version, asked: set[str] | None = None
) -> bytes:
    """The summaries of neighbouring rows, each with a comma after it.

    Before 1.27 only the classes `asked` for are shown.
    """
    resources: dict[int, dict[str, dict[str, int]]] = {row: {} for row in rows}
    for class_id, inventories in snapshot.inventories.items():
        low, high = np.searchsorted(inventories.rows.values, (rows.start, rows.stop))
        if low == high:
            # Perhaps of a class that is no more: only what is in use has to have a name.
            continue
        name = snapshot.class_names[class_id]
        if version < 27 and asked is not None and name not in asked:
            continue
        entries = zip(
            inventories.rows.values[low:high].tolist(),
            inventories.capacity.values[low:high].tolist(),
            inventories.free.values[low:high].tolist(),
            strict=True,
        )
        for row, capacity, free in entries:
            resources[row][name] = {"capacity": capacity, "used": capacity - free}
    texts = snapshot.uuids.values[rows.start : rows.stop].tolist()
    uuids = {row: text.decode() for row, text in zip(rows, texts, strict=True)}
    shown: dict[str, dict[str, Any]] = {}
    for row, amounts in resources.items():
        summary = shown[uuids[row]] = {"resources": amounts}
        if version >= 17:
            held = snapshot.trait_sets.members(snapshot.traits.values[row])
            summary["traits"] = [snapshot.trait_names[trait] for trait in sorted(held)]
        if version >= 29:
            # From here on the rows are those of a whole tree, so parent and root are among them.
            parent = int(snapshot.parent.values[row])
            summary["parent_provider_uuid"] = uuids.get(parent)
            summary["root_provider_uuid"] = uuids[rows.start]
    return orjson.dumps(shown)[1:-1] + b","


def candidates_json(
    search: Search,
    found: Block,
    version: Version,
    writer: SummaryWriter,
    scores: Sequence[Mapping[str, int]] = (),
) -> Iterator[bytes | memoryview]:
    """The whole answer, in parts that each take a few milliseconds. `writer` may remember the trees
    of one fleet; the snapshot has to stay as it is meanwhile."""
    if not len(found):
        yield NO_CANDIDATES
        return
    yield REQUESTS
    yield from CandidateWriter(search, version, scores).requests(found)
    yield SUMMARIES
    yield from writer.summaries(search.snapshot, search.slots, found, version)
    yield END


def cut_short(search: Search) -> dict[str, str]:
    """The header that says so where there was no time to rank all trees, else none."""
    unranked = unranked_trees(search)
    return {UNRANKED_TREES: str(unranked)} if unranked else {}
