"""The worker: claims jobs, runs handlers, renews leases, reports outcomes."""
