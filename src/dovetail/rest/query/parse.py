"""Parser of candidate queries: from a query string to a request for the engine.

Called by GET /allocation_candidates in the version its client speaks, and by Dovetail's own
endpoints, whose questions are candidate queries in the newest version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dovetail.core.bounded_cache import BoundedCache
from dovetail.core.request import Affinity, Group, Request
from dovetail.devices.classes.documents import DeviceClass
from dovetail.engine.rank.parse import BadRanking, parse_ranking
from dovetail.engine.rank.ranking import FIRST_FIT
from dovetail.rest.query import filters
from dovetail.rest.query.schema import (
    GROUP_EXTENSIONS,
    GROUP_KEYS,
    LIST_CANDIDATES,
    NUMBERED,
    SUFFIX,
)
from dovetail.rest.query.versions import NEWEST
from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.http import Query, Version, VersionedQuery
from dovetail.rest.server.settings import RequestLimits
from dovetail.service.snapshots import SnapshotKeeper

NUMBERED_KEY = re.compile(rf"({'|'.join(GROUP_KEYS)})({NUMBERED})?")
SUFFIXED_KEY = re.compile(rf"({'|'.join((*GROUP_KEYS, *GROUP_EXTENSIONS))})({SUFFIX})?")

LONGEST_KEPT_QUERY = 2048
REQUESTS: BoundedCache[tuple[Version, RequestLimits, str], Request] = BoundedCache(256)
"""By version, limits and text of the query, if no device class is named in it: those may be defined
anew."""

Classes = Mapping[str, DeviceClass]
"""The device classes that are defined, by name."""


def names_class(query: Query) -> bool:
    """Whether it can only be understood by somebody who knows the classes."""
    return any(key.startswith("class") for key in query.last)


async def classes_for(keeper: SnapshotKeeper, query: Query) -> Classes:
    """The classes that are defined now, if the query names any."""
    if not names_class(query):
        return {}
    await keeper.fresh()
    return keeper.definitions


def query_of(text: str, limits: RequestLimits) -> Query:
    """A query that stands in a document: no longer than one in an address may be."""
    if len(text) > limits.query_bytes:
        raise bad_request(
            f"`query` has {len(text)} characters; at most {limits.query_bytes} are read "
            "(`max.query_bytes`).",
            filters.BAD_VALUE,
        )
    try:
        return Query(text.removeprefix("?").encode("ascii"))
    except (UnicodeError, ValueError) as error:
        raise bad_request(f"`query` is no query string: {error}") from error


def newest_request(query: Query, classes: Classes, limits: RequestLimits) -> Request:
    """The request of a query in the newest version."""
    return request_of(VersionedQuery(query, NEWEST), classes, limits)


async def request_in(keeper: SnapshotKeeper, text: str, limits: RequestLimits) -> Request:
    """The request of a query that stands in a document, read once for all who ask the same."""
    found = REQUESTS.get((NEWEST, limits, text))
    if found is not None:
        return found
    asked = VersionedQuery(query_of(text, limits), NEWEST)
    return request_kept(asked, text, await classes_for(keeper, asked.query), limits)


def request_kept(
    asked: VersionedQuery, text: str, classes: Classes, limits: RequestLimits
) -> Request:
    """`request_of`, once for all who ask with this text in the same version."""
    key = asked.version, limits, text
    found = REQUESTS.get(key)
    if found is None:
        found = request_of(asked, classes, limits)
        if len(text) <= LONGEST_KEPT_QUERY and not names_class(asked.query):
            REQUESTS.put(key, found)
    return found


def request_of(asked: VersionedQuery, classes: Classes, limits: RequestLimits) -> Request:
    """The request. Raises HttpError for what the version does not know, nobody understands, or is
    more than the limits let one request ask for."""
    query = asked.query
    refuse_too_many(asked, limits.groups)
    LIST_CANDIDATES.at(asked.version).query(query)
    affinities = affinities_of(query)
    root_required, root_forbidden = root_traits(query)
    root_member_of, root_not_member_of = filters.member_of(asked, key="root_member_of")
    groups = groups_of(asked, classes)
    check_groups(asked, groups, affinities)
    return Request(
        groups=tuple(groups.values()),
        limit=limit_of(query),
        isolated=isolated(asked, groups),
        affinities=affinities,
        root_required=root_required,
        root_forbidden=root_forbidden,
        root_member_of=root_member_of,
        root_not_member_of=root_not_member_of,
        one_provider_per_tree=not asked.since(29),
        rank=rank_of(query),
    )


def limit_of(query: Query) -> int | None:
    values = query.all("limit")
    if not values:
        return None
    if not values[0].isdecimal() or int(values[0][:12]) < 1:
        raise bad_request(f"{filters.INVALID}limit has to be a positive integer. Got: {values[0]}")
    return int(values[0][:12])


def rank_of(query: Query) -> tuple[tuple[str, int], ...]:
    """Policies with their weights; whoever wants scores but no order gets those of the default."""
    values = query.all("rank")
    if not values:
        return ((FIRST_FIT, 1),) if shows_scores(query) else ()
    if len(values) > 1:
        raise bad_request(
            "Query parameter 'rank' may be specified only once.", filters.DUPLICATE_KEY
        )
    try:
        return parse_ranking(values[0])
    except BadRanking as error:
        raise bad_request(f"{filters.INVALID}`rank`: {error}", filters.BAD_VALUE) from error


def shows_scores(query: Query) -> bool:
    return query.all("scores")[-1:] == ["1"]


def key_pattern(asked: VersionedQuery) -> re.Pattern[str]:
    """Of the parameters of groups."""
    # What is Dovetail's own in these keys was refused before 1.36, by the schema.
    return SUFFIXED_KEY if asked.since(33) else NUMBERED_KEY


def refuse_too_many(asked: VersionedQuery, most: int) -> None:
    """Groups and affinities are bounded before anything is made of them: what the engine sets up
    for a request grows with the product of both. Linear in the number of parameters."""
    pattern = key_pattern(asked)
    suffixes: set[str] = set()
    for key in asked.query.last:
        match = pattern.fullmatch(key)
        if match:
            suffixes.add(match.group(2) or "")
            if len(suffixes) > most:
                raise too_many(f"groups, of which `{key}` begins one too many", most)
    if len(asked.query.all("same_subtree")) > most:
        raise too_many("`same_subtree` parameters", most)


def too_many(what: str, most: int) -> HttpError:
    return bad_request(
        f"{filters.INVALID}The request has more than {most} {what}. At most {most} are answered "
        "here (`max.groups`): ask for fewer at once.",
        filters.BAD_VALUE,
    )


def groups_of(asked: VersionedQuery, classes: Classes) -> dict[str, Group]:
    """Groups by suffix, in the order in which the query first names them."""
    pattern = key_pattern(asked)
    named: dict[str, dict[str, str]] = {}
    for key, value in asked.query.pairs:
        match = pattern.fullmatch(key)
        if match:
            prefix, suffix = match.group(1), match.group(2) or ""
            named.setdefault(suffix, {})[prefix] = value
    return {suffix: group_of(asked, suffix, values, classes) for suffix, values in named.items()}


def group_of(asked: VersionedQuery, suffix: str, values: dict[str, str], classes: Classes) -> Group:
    required, forbidden = filters.required_traits(asked, suffix)
    member_of, not_member_of = filters.member_of(asked, suffix)
    return Group(
        suffix=suffix,
        resources=filters.resources(values["resources"]) if "resources" in values else {},
        required=required,
        forbidden=forbidden,
        member_of=member_of,
        not_member_of=not_member_of,
        in_tree=filters.tree(values["in_tree"]) if "in_tree" in values else None,
        selectors=filters.attributes(asked.query.all(f"attributes{suffix}"), suffix),
        classes=filters.classes(asked.query.all(f"class{suffix}"), suffix, classes),
    )


def check_groups(
    asked: VersionedQuery, groups: dict[str, Group], affinities: tuple[Affinity, ...]
) -> None:
    if asked.since(36):
        check_resourceless(groups, affinities)
    else:
        check_orphans(groups)
    if asked.since(22):
        check_conflicts(groups)


def check_resourceless(groups: dict[str, Group], affinities: tuple[Affinity, ...]) -> None:
    """Groups without resources have to be tied to others by same_subtree."""
    resourceless = [suffix for suffix, group in groups.items() if not group.resources]
    if len(resourceless) == len(groups):
        raise bad_request(
            "There must be at least one resources or resources[$S] parameter.",
            filters.MISSING_VALUE,
        )
    tied = {suffix for affinity in affinities for suffix in affinity.together | affinity.apart}
    loose = [suffix for suffix in resourceless if suffix not in tied]
    if loose:
        raise bad_request(
            "Resourceless suffixed group request should be specified in `same_subtree` query "
            f"param: bad group(s) - {loose}.",
            filters.BAD_VALUE,
        )
    refuse_unknown("same_subtree", tied, groups)


def refuse_unknown(key: str, suffixes: set[str], groups: dict[str, Group]) -> None:
    unknown = sorted(suffix for suffix in suffixes if suffix not in groups)
    if unknown:
        raise bad_request(
            f"Real suffixes should be specified in `{key}`: {unknown} not found in {list(groups)}.",
            filters.BAD_VALUE,
        )


def check_orphans(groups: dict[str, Group]) -> None:
    """Before 1.36 every group asks for resources."""
    traits = [
        f"required{s}" for s, group in groups.items() if group.required and not group.resources
    ]
    if traits:
        raise bad_request(
            "All traits parameters must be associated with resources.  Found the following "
            f"orphaned traits keys: {', '.join(traits)}"
        )
    aggregates = [
        f"member_of{s}"
        for s, group in groups.items()
        if (group.member_of or group.not_member_of) and not group.resources
    ]
    if aggregates:
        raise bad_request(
            "All member_of parameters must be associated with resources. Found the following "
            f"orphaned member_of keys: {', '.join(aggregates)}"
        )
    if not all(group.resources for group in groups.values()):
        raise bad_request("All request groups must specify resources.")
    if not groups:
        raise bad_request(
            "At least one request group (`resources` or `resources{$S}`) is required."
        )


def check_conflicts(groups: dict[str, Group]) -> None:
    conflicts = [
        f"required{suffix}: ({', '.join(sorted(names))})"
        for suffix, group in groups.items()
        for names in group.required
        if names <= group.forbidden
    ]
    if conflicts:
        raise bad_request(
            "Conflicting required and forbidden traits found in the following traits keys: "
            f"{', '.join(sorted(conflicts))}"
        )


def isolated(asked: VersionedQuery, groups: dict[str, Group]) -> frozenset[str]:
    """The suffixes whose provider may serve no other suffixed group."""
    suffixed = frozenset(suffix for suffix in groups if suffix)
    policies, alone = asked.query.all("group_policy"), asked.query.all("isolate")
    if alone and policies:
        raise bad_request(
            "Query parameters 'isolate' and 'group_policy' exclude each other.", filters.BAD_VALUE
        )
    if alone:
        named = {suffix.strip() for value in alone for suffix in value.split(",")}
        refuse_empty("isolate", named)
        refuse_unknown("isolate", named, groups)
        return frozenset(named)
    if not policies and len(suffixed) > 1 and not asked.since(36):
        raise bad_request(
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.'
        )
    return suffixed if policies[:1] == ["isolate"] else frozenset()


def refuse_empty(key: str, suffixes: set[str]) -> None:
    if "" in suffixes:
        raise bad_request(
            f"Empty string (unsuffixed group) can not be specified in `{key}` ", filters.BAD_VALUE
        )


def affinities_of(query: Query) -> tuple[Affinity, ...]:
    return tuple(affinity_of(value) for value in query.all("same_subtree"))


def affinity_of(text: str) -> Affinity:
    names = {name.strip() for name in text.split(",")}
    apart = {name.removeprefix("!") for name in names if name.startswith("!")}
    together = {name for name in names if not name.startswith("!")}
    refuse_empty("same_subtree", together | apart)
    if not together:
        raise bad_request(
            "`same_subtree` has to name at least one group without `!`: there is no subtree to "
            f"stay out of in {text}",
            filters.BAD_VALUE,
        )
    if together & apart:
        raise bad_request(
            f"Groups both in and out of a subtree found in `same_subtree`: {text}",
            filters.BAD_VALUE,
        )
    return Affinity(frozenset(together), frozenset(apart))


def root_traits(query: Query) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    values = query.all("root_required")
    if not values:
        return (), frozenset()
    if len(values) > 1:
        raise HttpError(
            400,
            "Query parameter 'root_required' may be specified only once.",
            code=filters.DUPLICATE_KEY,
        )
    required, forbidden = filters.traits(values[0], allow_forbidden=True, allow_any=False)
    conflicts = {name for names in required for name in names} & forbidden
    if conflicts:
        raise bad_request(
            "Conflicting required and forbidden traits found in root_required: "
            f"{', '.join(sorted(conflicts))}",
            filters.BAD_VALUE,
        )
    return tuple(required), forbidden
