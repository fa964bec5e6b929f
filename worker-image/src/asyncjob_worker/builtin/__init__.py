"""The handlers that a worker has without an app: `http`, `exec`, `echo` and `sleep`.

`asyncjob_worker.builtin:app` is built from this process's environment. Another app includes it with
`app.include(asyncjob_worker.builtin.app)`.
"""

import os

from asyncjob_worker.builtin.assembly import build_app

__all__ = ["app", "build_app"]

app = build_app(os.environ)
