"""Commands that run something here: serve, scheduler, simulate, db, and their settings."""
