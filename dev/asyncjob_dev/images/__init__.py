"""Builds the project's images with what the machine has, also where no image registry is reached.

Knows nothing of what is in an image: that is its Dockerfile's matter, which is the same for all.
"""

from asyncjob_dev.images.builder import BuildRequest, build_image
from asyncjob_dev.images.engines import Engine, buildah_in, find_engine

__all__ = ["BuildRequest", "Engine", "build_image", "buildah_in", "find_engine"]
