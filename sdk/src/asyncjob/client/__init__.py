"""Clients: submit jobs and see what becomes of them, by REST or straight on Kubernetes."""
