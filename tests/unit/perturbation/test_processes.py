"""The processes of the parts, as they are ended and started again."""

import asyncio
from pathlib import Path

from asyncjob_perturbation.plan import Part
from asyncjob_perturbation.processes import PartProcess


async def test_a_part_that_has_just_ended_by_itself_is_stopped_like_any_other(
    tmp_path: Path,
) -> None:
    ended = asyncio.Event()

    async def on_end(_: int) -> None:
        ended.set()

    part = PartProcess(
        *(Part.WORKER, ["--no-such-option"]),
        ready_url="",
        log=tmp_path / "log",
        environment={},
        on_end=on_end,
    )
    part.start()
    await ended.wait()
    await part.stop()
    assert "--no-such-option" in part.words()
