"""Whole ledgers at a time: fleet documents in and out, backup, restore and audit."""
