"""The daemon of a node, put together: `dovetail agent`."""
