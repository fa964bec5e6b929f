"""`make demo`: the main job and what may go wrong with it, on a real API server, checked."""

from asyncjob_dev.demo.run import run_demo

__all__ = ["run_demo"]
