"""Use cases: keep a snapshot true, ask the engine, commit to the ledger."""
