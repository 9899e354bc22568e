"""Commands about the hardware in the ledger: tree, providers, traits, load, dump, audit."""
