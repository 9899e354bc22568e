"""The QoS resource manager: who gets what on this node, and what is remembered of it."""
