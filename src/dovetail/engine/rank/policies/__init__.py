"""The named ranking policies, a module each, and the registry that lists them."""
