"""A day's books, closed at half past two in the morning of a city."""
