"""What the gateway tells of itself: metrics and the access log."""
