"""The Kubernetes edge: the client behind a port, a level-triggered runtime, the doors on it."""
