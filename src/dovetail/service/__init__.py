"""Use cases: keep a snapshot true, ask the engine, claim, explain; what every edge calls."""
