"""What runs is seen: metrics."""
