"""Tests of the combination of providers."""
