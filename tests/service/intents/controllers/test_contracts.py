"""Our declarations and protobuf's own, made of the documented text, say the same bytes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor

from dovetail.service.intents.controllers.contracts import placement
from dovetail.wire.codec import Message, decode, encode, shapes
from tests.service.intents.controllers.documented import PLACEMENT, THEIRS
from tests.service.intents.controllers.protos import PACKAGE

OURS = {
    name: each
    for name, each in inspect.getmembers(placement, inspect.isclass)
    if issubclass(each, Message) and each is not Message
}


def test_the_page_has_every_message_and_no_other() -> None:
    assert THEIRS.keys() == OURS.keys()
    package = PACKAGE.search(PLACEMENT)
    assert package
    assert placement.CANDIDATES.path == f"/{package[1]}.PlacementController/Candidates"


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_field_has_the_number_and_the_type_of_the_page(name: str) -> None:
    fields: dict[str, FieldDescriptor] = THEIRS[name].DESCRIPTOR.fields_by_name
    ours = shapes(OURS[name])
    assert {each: shape.number for each, shape in ours.items()} == {
        each: field.number for each, field in fields.items()
    }
    for each, field in fields.items():
        assert ours[each].repeated == field.is_repeated
        kind = field.message_type.name if field.message_type else field.type
        assert kind in (getattr(ours[each].item, "__name__", ""), *SCALARS[ours[each].item])


SCALARS: Any = {
    str: [FieldDescriptor.TYPE_STRING],
    int: [FieldDescriptor.TYPE_INT64],
    bool: [FieldDescriptor.TYPE_BOOL],
    **{each: [] for each in OURS.values()},
}


def test_an_answer_is_the_same_on_either_side() -> None:
    theirs = THEIRS["CandidatesResponse"](
        candidates=[
            {
                "apps": [
                    {
                        "app": "fwall",
                        "parts": [{"count": 2, "clusters": {"names": ["p1+c3"], "denies": True}}],
                        "preference": [{"names": ["p1+c1"]}],
                    }
                ]
            }
        ],
        contended=[{"cluster": "p1+c2", "fitting": [{"apps": ["fwall"]}]}],
        scores=[{"app": "fwall", "cluster": "p1+c1", "score": -9}],
        reasons=[{"app": "fwall", "cluster": "p1+c3", "token": "cpu", "words": "need 4"}],
        is_cut=True,
    )
    read = decode(placement.CandidatesResponse, theirs.SerializeToString())
    assert read.candidates[0].apps[0].parts[0].clusters.denies
    assert read.scores[0].score == -9
    assert THEIRS["CandidatesResponse"].FromString(encode(read)) == theirs
