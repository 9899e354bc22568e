"""Real nodes: an unmodified kubelet with containerd and the agent, joined to a real API server."""
