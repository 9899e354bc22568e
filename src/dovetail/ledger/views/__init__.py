"""What people look at, read across the nouns of the ledger; nothing here writes."""
