"""Random selectors and attributes that have something to do with each other."""

from __future__ import annotations

from hypothesis import strategies as st

from dovetail.core.device import Device
from dovetail.core.selectors.selector import ORDERED, PRESENCE, SETS, Expression, Operator, Selector

KEYS = ("memory", "speed", "version", "cores", "ecc", "in")
AMOUNTS = (
    *("16G", "30G", "30GB", "30000M", "30Gi", "512B", "500m", "-1k"),
    *("10Gbps", "40GBPS", "5GB/s", "1.5bps"),
    *("8", "16", "1e1", "0.5", "30000000000"),
    *("v1.9", "v1.10", "1.10.0", "535.104.05", "v2"),
)
TEXTS = ("yes", "no", "", 'a "b" \\ c', "é\n")
VALUES = AMOUNTS + TEXTS


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    key = draw(st.sampled_from((*KEYS, "Kind")))
    operator = draw(st.sampled_from(Operator))
    texts = ("gpu", "nic") if key == "Kind" else VALUES
    if operator in PRESENCE:
        return Expression(key, operator)
    if operator in SETS:
        found = draw(st.lists(st.sampled_from(texts), min_size=1, max_size=3, unique=True))
        return Expression(key, operator, tuple(found))
    allowed = AMOUNTS if operator in ORDERED else texts
    return Expression(key, operator, (draw(st.sampled_from(allowed)),))


def selectors(most: int = 3) -> st.SearchStrategy[Selector]:
    branches = st.lists(expressions(), min_size=1, max_size=most).map(tuple)
    return st.lists(branches, min_size=1, max_size=most).map(tuple)


def attribute_sets() -> st.SearchStrategy[dict[str, str]]:
    """As devices have them: there is always a Kind."""
    properties = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
    return st.builds(
        lambda found, kind: {**found, "Kind": kind}, properties, st.sampled_from(("gpu", "nic"))
    )


def devices() -> st.SearchStrategy[Device]:
    return st.builds(
        lambda found, units: Device(
            node="n",
            name="d",
            kind=found["Kind"],
            units=units,
            properties={key: value for key, value in found.items() if key != "Kind"},
        ),
        attribute_sets(),
        st.integers(1, 4),
    )
