"""Hardware intents: what combining, picking and mirroring cost."""
