"""Authentication: one module per way in, all behind `identity.Authenticator`.

What a caller may do, whichever way it came, is decided in `rest/server/policy.py`.
"""
