"""The operator of machines: observes a cluster and the ledger, applies what `machines` plans."""
