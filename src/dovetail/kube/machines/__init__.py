"""The operator of machines: observes a cluster and the ledger, and applies what `machines` plans."""
