"""What a server tells about itself: metrics, and spans by phase. Imports nothing of ours."""
