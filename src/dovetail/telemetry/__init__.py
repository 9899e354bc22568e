"""What a process tells about itself: logs, metrics, and spans by phase. Imports nothing of ours."""
