"""What is held and where: families that share a stock, sleepers, and room on the pool's nodes."""
