"""JSON encoder of allocation candidates, made of templates: each part is written once.

GET /allocation_candidates and what-if questions are answered with it. An answer can hold tens of
thousands of candidates that hardly differ. So their common text is written once per answer, and
what is left per candidate is filling in UUIDs; `summary_json` tells the trees they are in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import orjson
from numpy.typing import NDArray

from dovetail.engine import Search
from dovetail.engine.combine.round_robin import Block
from dovetail.rest.query.summary_json import SummaryWriter
from dovetail.rest.server.http import Version
from dovetail.service.asking import unranked_trees

TemplateDraft = tuple[str, list[int]]

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
