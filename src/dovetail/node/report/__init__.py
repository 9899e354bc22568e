"""What the node tells others: capacity, the pod resources API, devices of the machine."""
