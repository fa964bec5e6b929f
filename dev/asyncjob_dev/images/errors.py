"""What can go wrong with images, each with what to install or set."""

from collections.abc import Iterable, Sequence

from asyncjob_dev.errors import DevError


class ImageError(DevError):
    """An image cannot be built."""


class NoEngineError(ImageError):
    """Nothing here builds images."""

    def __init__(self, tried: Iterable[str]) -> None:
        super().__init__(
            f"nothing here builds images ({'; '.join(tried)}). Install docker, podman or buildah "
            "(Debian: apt-get install buildah)."
        )


class NoBaseError(ImageError):
    """The base image is not to be had, and none can be made here."""

    def __init__(self, base: str, reason: str, missing: str) -> None:
        super().__init__(
            f"the base image {base} cannot be fetched ({reason}), and {missing} to make one here. "
            "Set BASE to an image with Python 3.11 or newer, or, on Debian as root: "
            "apt-get install debootstrap"
        )


class EngineFailedError(ImageError):
    """A program that works on images ended with an error."""

    def __init__(self, command: Sequence[str], returncode: int, tail: str) -> None:
        super().__init__(f"{' '.join(command[:2])} … ended with {returncode}:\n{tail}")
