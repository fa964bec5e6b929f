"""The leases of a worker: those of its jobs, and the one that registers the worker."""
