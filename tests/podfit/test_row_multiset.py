"""The multiset of keys on rows, against a dictionary."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.podfit.row_multiset import RowMultiset


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
def test_a_multiset_counts_what_is_in_it(seed: int) -> None:
    rng = Random(seed)
    multiset, bag = RowMultiset[str](), dict[int, tuple[str, int]]()
    for _ in range(60):
        if bag and rng.random() < 0.4:
            place = rng.choice(list(bag))
            multiset.remove(place)
            del bag[place]
        else:
            key, row = rng.choice("abcdef"), rng.randrange(4)
            place = multiset.add(key, row)
            assert place not in bag
            bag[place] = (key, row)
        wanted = frozenset(rng.sample("abcdef", 2))
        chosen = multiset.decided(wanted, wanted.__contains__)
        right = Counter(row for key, row in bag.values() if key in wanted)
        assert multiset.counts(chosen, 4).tolist() == [right[row] for row in range(4)]
        assert bool(multiset) == bool(bag)
