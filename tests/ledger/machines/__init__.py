"""Tests of `ledger/machines`."""
