"""The child jobs of an attempt: submitted, found again, and waited for."""
