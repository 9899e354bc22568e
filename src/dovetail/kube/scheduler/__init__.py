"""The scheduler: from pending pods to bound ones, with their devices claimed in the ledger."""
