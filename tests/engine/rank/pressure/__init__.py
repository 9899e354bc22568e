"""Tests of ranking."""
