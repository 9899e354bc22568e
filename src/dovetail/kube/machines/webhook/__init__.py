"""The optional admission webhook of machines: immediate refusals, served by every replica."""
