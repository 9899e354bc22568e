"""Previews for `dovetail machines`: what there is, what more would fit, what a change would do.

listing      units, holders and those who wait, all of them
pool_parts   types and nodes that have to do with each other, as tables for packing
forecast     how many more units of each type would really fit
stock        where the stock of a specification would be, or why it is short
dry_run      what would change if a specification were accepted
"""
