"""Small asynchronous tools: back-off, single flight, supervision, background work."""
