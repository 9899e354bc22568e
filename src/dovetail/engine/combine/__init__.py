"""Combines providers within a tree into candidates: offers, rules, backtracking, whole products."""
