"""What the image runs as it is: the built-in handlers. An app.py copied over it takes its place."""

from asyncjob_worker.builtin import app

__all__ = ["app"]
