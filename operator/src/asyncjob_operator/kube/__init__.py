"""The operator's own access to the cluster: clocks, election, permissions; no rules of jobs."""
