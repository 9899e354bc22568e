"""Partition candidates: compact sets of clusters for each app, combined, and one pick of them."""
