"""Keys that are probably meant to be other keys: another case, or one character off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def near_misses(key: str, having: Mapping[str, int]) -> Iterator[str]:
    """In words; `having` tells how many devices have each key that there is."""
    for other, number in having.items():
        if other == key:
            continue
        if other.casefold() == key.casefold():
            # Even where some devices have the key: the others are passed over silently.
            yield f"key {key!r} is not {other!r}, which {_devices(number)}: case matters"
        elif key not in having and one_off(key, other):
            yield f"no device has the key {key!r}, but {other!r} is there: {_devices(number)} it"


def _devices(number: int) -> str:
    return f"{number} device has" if number == 1 else f"{number} devices have"


def one_off(one: str, other: str) -> bool:
    """One character inserted, left out or exchanged makes the one the other."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1 or one == other:
        return False
    same = next(
        (at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
    )
    if len(short) == len(long):
        return short[same + 1 :] == long[same + 1 :]
    return short[same:] == long[same + 1 :]
