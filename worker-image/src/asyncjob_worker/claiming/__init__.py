"""From queued jobs to a claimed one: watch, backlog, selection, claim, slots."""
