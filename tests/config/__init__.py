"""Tests of the settings of daemons."""
