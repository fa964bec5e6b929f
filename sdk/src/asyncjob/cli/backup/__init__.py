"""`export` and `restore`.

All objects of a namespace, or of all namespaces, written to a file and created again from it.

A status cannot be restored through the API, so a restored job has not started yet; the file keeps
its former status. Backup talks to the API server itself, because a gateway offers neither.
"""
