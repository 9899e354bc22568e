"""Who is sold a unit: buyers, caps, windows, the line of those who wait, and the sale itself."""
