"""The claim transaction in parts: what is locked and checked, and first claims of consumers."""
