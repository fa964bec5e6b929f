"""Thumbnails: what is written, and that no image of a stranger's does any harm."""

import struct
import zlib
from pathlib import Path

import pytest
from examples.handlers import thumbnails as module
from examples.handlers.thumbnails import app
from PIL import Image, ImageOps

from asyncjob import Fail
from asyncjob.app import Isolation
from asyncjob.testing import HandlerRun, Phase, Stop, run_handler

TYPE = "images.thumbnails"


def payload(source: str = "in.png", **more: object) -> dict[str, object]:
    return {"source": source, "folder": "out", "sizes": [8, 16], **more}


def png_header(width: int, height: int) -> bytes:
    """Return a PNG that says it is so large, and has no pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


async def test_each_size_is_a_file_that_keeps_the_shape(folder: Path) -> None:
    Image.new("RGB", (40, 20), "red").save("in.png")
    run = await run_handler(app, TYPE, payload(), raise_errors=True)
    assert isinstance(run.result, list)
    size_of = {name: (folder / name).stat().st_size for name in ("out/in-16.png", "out/in-8.png")}
    assert run.result == [
        {"file": name, "width": 2 * edge, "height": edge, "size_bytes": size_of[name]}
        for name, edge in (("out/in-8.png", 4), ("out/in-16.png", 8))
    ]
    assert run.progress == [(50, "out/in-8.png"), (100, "out/in-16.png")]
    with Image.open("out/in-8.png") as small:
        assert (small.size, small.getpixel((0, 0))) == ((8, 4), (255, 0, 0))


async def test_a_second_run_leaves_the_same_files_and_no_draft(folder: Path) -> None:
    Image.new("RGBA", (40, 20), (255, 0, 0, 99)).save("in.png")
    first = await run_handler(app, TYPE, payload())
    before = {path: path.read_bytes() for path in (folder / "out").iterdir()}
    second = await run_handler(app, TYPE, payload(), attempt=2)
    assert first.result == second.result
    assert {path: path.read_bytes() for path in (folder / "out").iterdir()} == before
    assert len(before) == 2


async def test_a_photo_is_turned_upright_and_keeps_no_metadata(folder: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # Orientation: lies on its side
    Image.new("CMYK", (40, 20)).save("in.jpg", exif=exif, icc_profile=b"who knows")
    await run_handler(app, TYPE, payload("in.jpg"), raise_errors=True)
    with Image.open("out/in-8.png") as small:
        assert small.size == (4, 8)
        assert not small.getexif()
        assert not small.info


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "none of JPEG, PNG, WEBP"),
        (b"GIF89a, or so it says", "none of JPEG, PNG, WEBP"),
        (png_header(10, 10), "image"),
        (png_header(7000, 7000), "7000 x 7000 pixels are too many"),
        (png_header(60_000, 60_000), "decompression bomb"),
    ],
    ids=["empty", "format", "truncated", "large", "bomb"],
)
async def test_a_bad_image_is_a_dead_letter_at_once(folder: Path, content: bytes, why: str) -> None:
    (folder / "in.png").write_bytes(content)
    refused(await run_handler(app, TYPE, payload()), why)


async def test_a_large_file_is_not_even_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 3)
    (folder / "in.png").write_bytes(b"1234")
    refused(await run_handler(app, TYPE, payload()), "more than 3 bytes")


async def test_an_image_over_the_memory_limit_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swell(*_arguments: object, **_options: object) -> None:
        raise MemoryError

    Image.new("RGB", (40, 20)).save("in.png")
    monkeypatch.setattr(ImageOps, "exif_transpose", swell)
    refused(await run_handler(app, TYPE, payload()), "too much memory")


async def test_a_file_that_is_not_there_yet_is_tried_again(folder: Path) -> None:
    run = await run_handler(app, TYPE, payload())
    assert run.outcome.phase is Phase.RETRYING
    assert run.outcome.error is not None
    assert run.outcome.error.category == "NotFound"


async def test_no_file_is_written_outside_the_folder_of_the_worker(folder: Path) -> None:
    Image.new("RGB", (40, 20)).save("in.png")
    run = await run_handler(app, TYPE, payload(folder="../elsewhere"))
    assert isinstance(run.error, Fail)
    assert run.error.category == "Permission"


async def test_a_stopped_handler_makes_no_further_file(folder: Path) -> None:
    Image.new("RGB", (40, 20)).save("in.png")
    run = await run_handler(
        app, TYPE, payload(), stop_at=lambda run: Stop.CANCELLED if run.progress else None
    )
    assert run.outcome.phase is Phase.CANCELLED
    assert [path.name for path in (folder / "out").iterdir()] == ["in-8.png"]


def test_it_runs_in_a_process_that_cannot_swell() -> None:
    handler = app.handlers[TYPE]
    assert handler.isolation is Isolation.PROCESS
    assert handler.memory_mib is not None
    copies = 3 * 4 * module.MAX_PIXELS / 2**20
    assert copies < handler.memory_mib


def refused(run: HandlerRun, why: str) -> None:
    assert run.outcome.phase is Phase.DEAD_LETTER
    assert run.outcome.error is not None
    assert run.outcome.error.category == "Validation"
    assert why in str(run.outcome.message)
