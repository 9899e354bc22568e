"""How long one request keeps the event loop: every route, at 10,000 hosts, with large bodies."""
