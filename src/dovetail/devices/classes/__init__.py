"""Device classes as documents: what they select and why, and what is odd about them."""
