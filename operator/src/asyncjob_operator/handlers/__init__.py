"""Where everything is wired together: events in, the loops, their start and their end."""
