"""Devices of DRA drivers: claims of Kubernetes read, written before bindings, and cleared away.

claimed_devices    which devices ResourceClaims have, whoever wrote them
claim_writer       writes the claim of a plan, looks whether others have its devices, removes it
leftovers          claims that were written here and that no pod will use
"""
