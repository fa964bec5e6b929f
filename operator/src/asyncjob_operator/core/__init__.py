"""What the operator decides, pure: time and chance are arguments, nothing is read or written."""
