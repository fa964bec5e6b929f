"""A real Kubernetes control plane on one machine, for development and for tests.

It knows nothing of jobs, workers or the operator: it finds programs, runs them as plain
processes without root, and plays the kubelet for worker processes.
"""
