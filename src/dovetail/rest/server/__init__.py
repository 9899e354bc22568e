"""The HTTP server that doors are mounted on: application, routing, errors, policy, TLS, limits."""
