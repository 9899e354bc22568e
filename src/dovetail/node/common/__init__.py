"""What several rooms of the agent share: pods, ports, CPU sets, container settings."""
