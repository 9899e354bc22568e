"""The Placement API, microversions 1.0 to 1.39: one module per noun, all routes in routes.py."""
