"""Times Dovetail and the real OpenStack Placement side by side, on one machine, in one run.

Run it with `python -m bench`; nothing here is imported by the product or its tests.
"""
