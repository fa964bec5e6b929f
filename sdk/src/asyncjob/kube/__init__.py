"""Access to the API server: credentials, single requests, paged lists, watches and informers.

Knows nothing of the rules of jobs.
"""

from asyncjob.extras import needs

with needs("kubernetes"):
    from asyncjob.kube.access import ClusterAccess, load_access
    from asyncjob.kube.session import KubeSession
    from asyncjob.kube.watch import WatchEvent, watch

__all__ = ["ClusterAccess", "KubeSession", "WatchEvent", "load_access", "watch"]
