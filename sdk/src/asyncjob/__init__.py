"""Durable asynchronous jobs on Kubernetes: models, rules, handlers, clients."""
