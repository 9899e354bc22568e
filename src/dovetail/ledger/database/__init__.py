"""The databases behind the ledger: SQLite, PostgreSQL, group commit, the change log."""
