"""Parsers of the values in candidate queries: resources, traits, aggregates, attributes, classes.

`query.parse` uses all of them, the listing of providers some.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Mapping, Sequence, Sized

from dovetail.core.request import NamedSelector
from dovetail.core.selectors import condition_text
from dovetail.core.selectors.condition_text import BadCondition
from dovetail.core.selectors.selector import Selector
from dovetail.devices.classes.documents import DeviceClass
from dovetail.rest.server.errors import bad_request
from dovetail.rest.server.http import VersionedQuery
from dovetail.rest.server.validation import is_uuid_like

BAD_VALUE = "placement.query.bad_value"
DUPLICATE_KEY = "placement.query.duplicate_key"
MISSING_VALUE = "placement.query.missing_value"
"""What programs know a refused query by; doors that have no codes leave them out."""

INVALID = "Invalid query string parameters: "
MOST_CONDITIONS = 64
"""On the attributes of one group: each is a look at all distinct values of its key."""
MOST_DEMANDS = 100
"""Different resource classes, traits or aggregates that one group may demand all at once: each is
a look at all providers, and a statement of SQL that is longer is refused by SQLite. What is in one
`in:` is one demand, however many it names."""


def resources(text: str) -> dict[str, int]:
    """`VCPU:2,MEMORY_MB:1024` as amounts by class."""
    form = (
        "Badly formed resources parameter. Expected resources query string parameter in form: "
        "?resources=VCPU:2,MEMORY_MB:1024. Got: "
    )
    if not text.strip():
        raise bad_request(f"{form}empty string.")
    amounts = {}
    for part in text.split(","):
        name, colon, amount = part.partition(":")
        if not colon or ":" in amount:
            raise bad_request(f"{form}{part}.")
        amounts[name] = positive(name, amount)
    refuse_many_demands("resources", amounts)
    return amounts


def refuse_many_demands(key: str, demands: Sized) -> None:
    if len(demands) > MOST_DEMANDS:
        raise bad_request(
            f"{INVALID}`{key}` demands {len(demands)} things at once; at most {MOST_DEMANDS} are "
            "answered here: ask for fewer.",
            BAD_VALUE,
        )


def positive(name: str, text: str) -> int:
    # The bound keeps absurd numbers from costing time; nothing is ever that large.
    try:
        amount = int(text) if len(text) <= 40 else 10**40
    except ValueError:
        raise bad_request(
            f"Requested resource {name} expected positive integer amount. Got: {text}."
        ) from None
    if amount < 1:
        raise bad_request(f"Requested resource {name} requires amount >= 1. Got: {amount}.")
    return amount


def traits(
    text: str, *, allow_forbidden: bool, allow_any: bool
) -> tuple[list[frozenset[str]], frozenset[str]]:
    """`A,!B` or `in:A,C` as sets of alternatives required, and traits forbidden."""
    if text.startswith("in:"):
        return [alternatives(text, allow_any=allow_any)], frozenset()
    names = [name.strip() for name in text.split(",")]
    forbidden = {name.lstrip("!") for name in names if name.startswith("!")}
    if not all(names) or not all(forbidden):
        form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC" if allow_forbidden else "HW_CPU_X86_VMX,CUSTOM_MAGIC"
        raise bad_request(
            f"{INVALID}Expected 'required' parameter value of the form: {form}. "
            f"Got an empty trait in: {text}"
        )
    if forbidden and not allow_forbidden:
        raise bad_request(
            f"{INVALID}Expected 'required' parameter value of the form: "
            f"HW_CPU_X86_VMX,CUSTOM_MAGIC. Got: {text}"
        )
    required = [frozenset({name}) for name in names if not name.startswith("!")]
    return required, frozenset(forbidden)


def alternatives(text: str, *, allow_any: bool) -> frozenset[str]:
    form = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"
    if not allow_any:
        raise bad_request(
            f"{INVALID}The format '{form}' only supported since microversion 1.39. Got: {text}"
        )
    names = {name.strip() for name in text.removeprefix("in:").split(",")}
    if not all(names):
        raise bad_request(
            f"{INVALID}Expected 'required' parameter value of the form: {form}. "
            f"Got an empty trait in: {text}"
        )
    if any(name.startswith("!") for name in names):
        raise bad_request(
            f"{INVALID}The format '{form}' does not support forbidden traits. Got: {text}"
        )
    return frozenset(names)


def required_traits(
    asked: VersionedQuery, suffix: str = ""
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """All `required` parameters of a group; before 1.39 the last one counts."""
    values = asked.query.all(f"required{suffix}")
    if not asked.since(39):
        values = values[-1:]
    required: dict[frozenset[str], None] = {}
    forbidden: set[str] = set()
    for value in values:
        more, fewer = traits(value, allow_forbidden=asked.since(22), allow_any=asked.since(39))
        required.update(dict.fromkeys(more))
        forbidden |= fewer
    refuse_many_demands(f"required{suffix}", required)
    return tuple(required), frozenset(forbidden)


def aggregates(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """`A`, `in:A,B`, `!A` or `!in:A,B` as alternatives required, and aggregates forbidden."""
    if "," in text and not text.startswith(("in:", "!in:")):
        raise bad_request(
            "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword "
            f"using the valid microversion. Got: {text}"
        )
    negated = text.startswith("!")
    values = text.removeprefix("!").removeprefix("in:").split(",")
    for value in values:
        if not is_uuid_like(value):
            raise bad_request(
                f"{INVALID}Expected 'member_of' parameter to contain valid UUID(s). Got: {value}"
            )
    found = frozenset(values)
    return (frozenset(), found) if negated else (found, frozenset())


def member_of(
    asked: VersionedQuery, suffix: str = "", key: str = "member_of"
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """All `member_of` parameters of a group."""
    values = asked.query.all(f"{key}{suffix}")
    if len(values) > 1 and not asked.since(24):
        raise bad_request(f"Multiple member_of{suffix} parameters are not supported")
    required: dict[frozenset[str], None] = {}
    forbidden: set[str] = set()
    for value in values:
        inside, outside = aggregates(value)
        if inside:
            required[inside] = None
        if outside and not asked.since(32):
            raise bad_request(
                f"Forbidden member_of{suffix} parameters are not supported "
                "in the specified microversion"
            )
        forbidden |= outside
    refuse_many_demands(f"{key}{suffix}", required)
    return tuple(required), frozenset(forbidden)


def attributes(values: Sequence[str], suffix: str) -> tuple[Selector, ...]:
    """All `attributes` parameters of a group: each condition is a selector of its own, so that an
    explanation can tell which of them is not met."""
    found: dict[Selector, None] = {}
    for value in values:
        try:
            found.update({((each,),): None for each in condition_text.read(value)})
        except BadCondition as error:
            raise bad_request(
                f"{INVALID}`attributes{suffix}`: {error} in {value!r}", BAD_VALUE
            ) from error
        if len(found) > MOST_CONDITIONS:
            raise bad_request(
                f"{INVALID}`attributes{suffix}`: more than {MOST_CONDITIONS} conditions.",
                BAD_VALUE,
            )
    return tuple(found)


def classes(
    names: Sequence[str], suffix: str, known: Mapping[str, DeviceClass]
) -> tuple[NamedSelector, ...]:
    """All `class` parameters of a group."""
    found = []
    for name in dict.fromkeys(names):
        definition = known.get(name)
        if definition is None:
            raise bad_request(
                f"{INVALID}`class{suffix}`: no resource class {name!r} is defined.",
                BAD_VALUE,
            )
        if definition.members:
            members = ", ".join(member.name for member in definition.members)
            raise bad_request(
                f"{INVALID}`class{suffix}`: {name!r} is made of other classes, and a group is "
                f"served by one provider: ask for {members} in groups of their own.",
                BAD_VALUE,
            )
        found.append(NamedSelector(name, definition.selector))
    return tuple(found)


def tree(text: str) -> str:
    uuid = text.strip()
    if not is_uuid_like(uuid):
        raise bad_request(
            f"{INVALID}Expected 'in_tree' parameter to be a format of uuid. Got: {text}"
        )
    return str(uuids.UUID(uuid))
