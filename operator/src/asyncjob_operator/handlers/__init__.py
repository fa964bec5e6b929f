"""Where everything is wired together: kopf's events in, the loops, their start and their end."""
