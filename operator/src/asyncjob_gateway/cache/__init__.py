"""A watched copy of all jobs, lean, for lists and counts. Never a truth of its own."""
