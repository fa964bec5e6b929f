"""Commands, a module for each group of them: they act, and leave judging to the pure modules."""
