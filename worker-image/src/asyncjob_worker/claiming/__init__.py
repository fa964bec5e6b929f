"""From queued jobs to a claimed one: the watch, the backlog, selection, the claim and the slots."""
