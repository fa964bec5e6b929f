"""The operator's only source of chance."""

import random


def random_fraction() -> float:
    """Return a number uniform in [0, 1)."""
    return random.random()


def with_jitter(seconds: float) -> float:
    """Return the pause shortened by chance by up to half, so that replicas do not march in step."""
    return seconds * random.uniform(0.5, 1.0)
