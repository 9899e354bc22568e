"""Key of a request's shape: equal for requests that ask for the same things.

Whatever is kept from one request for the next of its kind (options, the best of each tree, how
often it comes) is kept under it.
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from dovetail.core.request import Group, Request

RESOURCES = Group.__struct_fields__.index("resources")
"""The place of the one field that has no hash."""


def request_key(request: Request) -> Hashable:
    """What is asked for, whatever the limit and the ranking."""
    return (
        tuple(map(_group_key, request.groups)),
        request.isolated,
        tuple((affinity.together, affinity.apart) for affinity in request.affinities),
        request.root_required,
        request.root_forbidden,
        request.root_member_of,
        request.root_not_member_of,
        request.one_provider_per_tree,
    )


def _group_key(group: Group) -> Hashable:
    """All that is asked of the group, whatever can be asked."""
    fields = msgspec.structs.astuple(group)
    resources = tuple(group.resources.items())
    return (*fields[:RESOURCES], resources, *fields[RESOURCES + 1 :])
