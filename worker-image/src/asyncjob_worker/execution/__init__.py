"""From a claimed job to its outcome: payload, handler, result, child jobs, hooks."""
