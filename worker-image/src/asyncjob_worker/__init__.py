"""The worker: claims jobs, runs their handlers, renews their leases, writes their outcomes."""
