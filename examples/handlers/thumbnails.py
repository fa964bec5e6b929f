"""`images.thumbnails`: an image in several sizes, from people one need not trust.

Decoding an image is native code fed with a stranger's bytes: it computes for long, may swell, and
may crash. So it has a process of its own, with a limit to its memory; the worker's other jobs never
notice. An image that cannot be read today cannot be read tomorrow: no retry.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from struct import error as StructError  # noqa: N812  # it is an exception
from typing import Annotated

from examples.handlers.places import drafted, target_path
from PIL import Image, ImageOps, UnidentifiedImageError
from pydantic import BaseModel, ConfigDict, Field

from asyncjob import Category, Fail, JobContext, WorkerApp

app = WorkerApp()

FORMATS = ("JPEG", "PNG", "WEBP")
MAX_BYTES = 20 * 2**20
MAX_PIXELS = 30_000_000
"""Four bytes each while an image is worked on, and up to three copies at a time."""

MEMORY_MIB = 512

Edge = Annotated[int, Field(ge=1, le=2048)]


class ThumbnailRequest(BaseModel):
    """Which image, into which folder, and how long the longer edge of each thumbnail is."""

    model_config = ConfigDict(extra="forbid")

    source: Path
    folder: Path
    sizes: set[Edge] = Field(default={64, 128, 256}, min_length=1, max_length=10)


class Thumbnail(BaseModel):
    """One line of the result; edges in pixels."""

    file: str
    width: int
    height: int
    size_bytes: int


@app.handler("images.thumbnails", timeout=120, isolation="process", memory_mib=MEMORY_MIB)
def thumbnails(job: JobContext, request: ThumbnailRequest) -> list[Thumbnail]:
    """Write a file per size; none is larger than the image."""
    made: list[Thumbnail] = []
    with _reading(request.source) as image:
        for size in sorted(request.sizes):
            if job.cancelled:
                break
            small = image.copy()
            small.thumbnail((size, size))
            made.append(_save(small, request, size))
            job.progress(100 * len(made) / len(request.sizes), made[-1].file)
    return made


def _save(image: Image.Image, request: ThumbnailRequest, size: int) -> Thumbnail:
    """Write one file. Each attempt gives it the same name, and nobody sees half of it."""
    name = request.folder / f"{request.source.stem}-{size}.png"
    target = target_path(name, ".png")
    with drafted(target) as draft:
        image.save(draft, format="PNG")
    return Thumbnail(
        file=name.as_posix(),
        width=image.width,
        height=image.height,
        size_bytes=target.stat().st_size,
    )


@contextmanager
def _reading(source: Path) -> Iterator[Image.Image]:
    """Open an image, upright and without metadata; raises Fail for one that is no good.

    A file that is not there is another matter: that error is retried.
    """
    if source.stat().st_size > MAX_BYTES:
        raise _refusal(source, f"more than {MAX_BYTES} bytes")
    data = BytesIO(source.read_bytes())
    try:
        image = _decode(source, data)
    except UnidentifiedImageError as error:
        raise _refusal(source, f"it is none of {', '.join(FORMATS)}") from error
    except (OSError, SyntaxError, ValueError, StructError) as error:
        raise _refusal(source, str(error)) from error
    except (Image.DecompressionBombError, MemoryError) as error:
        raise _refusal(source, str(error) or "it takes too much memory") from error
    with image:
        yield image


def _decode(source: Path, data: BytesIO) -> Image.Image:
    with Image.open(data, formats=FORMATS) as found:
        if found.width * found.height > MAX_PIXELS:  # known before a pixel is decoded
            raise _refusal(source, f"{found.width} x {found.height} pixels are too many")
        ImageOps.exif_transpose(found, in_place=True)
        pixels = found.convert("RGBA" if found.has_transparency_data else "RGB")
    pixels.info.clear()
    return pixels


def _refusal(source: Path, why: str) -> Fail:
    return Fail(f"{source} is no image to make thumbnails of: {why}", category=Category.VALIDATION)
