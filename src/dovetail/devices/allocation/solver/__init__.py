"""The assignment of devices to requests on one node: a branch and bound with flow bounds."""
