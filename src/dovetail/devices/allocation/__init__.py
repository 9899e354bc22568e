"""Which devices of a node serve a request for device classes, and who holds which of them."""
