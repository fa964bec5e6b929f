"""What the operator says of itself: metrics and logs."""
