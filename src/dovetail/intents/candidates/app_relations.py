"""App-to-app relations of a group: which apps must not meet, which must; all controllers' as one.

`combining` merges the app-to-app answers into one of these. That two apps must not meet is read
both ways round; that one requires another is not, but it is transitive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dovetail.intents.candidates.app_sets import AppMask, apps_of
from dovetail.intents.candidates.partitions import AppCompatibility


class AppContradiction(msgspec.Struct, frozen=True):
    """Apps whose relations cannot all be kept, wherever they go."""

    apps: tuple[str, ...]
    words: str


class AppRelations(msgspec.Struct, frozen=True):
    """By app, in the order of the group."""

    apps: tuple[str, ...]
    denied: tuple[AppMask, ...]
    """Those that an app must not meet."""
    required: tuple[AppMask, ...]
    """Those that have to be wherever the app is, itself included; transitive."""
    missing: tuple[tuple[str, str], ...] = ()
    """(app, other): the other is required, and is no app of the group."""

    @property
    def is_empty(self) -> bool:
        return not any(self.denied) and all(
            mask == 1 << app for app, mask in enumerate(self.required)
        )

    def contradictions(self) -> Iterator[AppContradiction]:
        for name, other in self.missing:
            words = f"{name} requires {other}, which is no app of the group"
            yield AppContradiction((name,), words)
        for app, mask in enumerate(self.required):
            pair = next(
                ((one, two) for one in apps_of(mask) for two in apps_of(self.denied[one] & mask)),
                None,
            )
            if pair is not None:
                yield self._contradiction(app, *pair)

    def _contradiction(self, app: int, one: int, two: int) -> AppContradiction:
        names = self.apps
        if app in (one, two):
            other = names[two if app == one else one]
            words = f"{names[app]} requires {other}, and must not share a cluster with it"
        else:
            words = (
                f"{names[app]} requires {names[one]} and {names[two]},"
                " which must not share a cluster"
            )
        involved = sorted({app, one, two})
        return AppContradiction(tuple(names[each] for each in involved), words)


def relations_of(answers: Iterable[AppCompatibility], apps: Sequence[str]) -> AppRelations:
    """Pairs that name other apps than these deny nothing."""
    numbers = {app: number for number, app in enumerate(apps)}
    denied = [0] * len(apps)
    required = [1 << number for number in range(len(apps))]
    missing: set[tuple[str, str]] = set()
    for answer in answers:
        for one, two in answer.denied:
            if one in numbers and two in numbers and one != two:
                denied[numbers[one]] |= 1 << numbers[two]
                denied[numbers[two]] |= 1 << numbers[one]
        for app, other in answer.required:
            if app in numbers and other in numbers:
                required[numbers[app]] |= 1 << numbers[other]
            elif app in numbers:
                missing.add((app, other))
    return AppRelations(tuple(apps), tuple(denied), _transitive(required), tuple(sorted(missing)))


def _transitive(required: Sequence[AppMask]) -> tuple[AppMask, ...]:
    """Warshall's closure: after an app's turn, all paths that pass through it are known."""
    found = list(required)
    for middle in range(len(found)):
        for app, mask in enumerate(found):
            if mask >> middle & 1:
                found[app] = mask | found[middle]
    return tuple(found)
