"""What schedules decide, pure: which runs are due, and what becomes of them."""
