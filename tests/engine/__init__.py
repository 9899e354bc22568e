"""The engine against a slow, obviously correct oracle, and against the specification's examples."""
