"""Pods that were refused for good: failed at the API server, if that is wanted."""
