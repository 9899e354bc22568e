"""Random comparison of Dovetail with the real OpenStack Placement, both live over HTTP.

`python -m tests.differential.run --cases N` from the repository's root runs it at length; the tests
beside it run a few hundred cases and show, one by one, where the real Placement is known to err.
"""
