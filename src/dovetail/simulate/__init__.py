"""Replays workloads through the engine and its policies, to see how well they place."""
