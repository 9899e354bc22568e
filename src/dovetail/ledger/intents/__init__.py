"""The ledger of hardware intents: what users wrote, what clusters have, what was deployed where."""
