"""`audit record|check`: the history of jobs, recorded and judged."""
