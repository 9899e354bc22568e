"""Tests of metrics and spans."""
