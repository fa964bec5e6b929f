"""Commands about the program itself and what it says."""
