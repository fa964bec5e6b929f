"""Where the time goes: profiles of operator, worker and API server while jobs flow.

A profile slows down what it looks at, so that nothing else is measured along with it; Python's much
more than the API server's, whose is therefore taken apart from them.
"""

import pstats
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import StringIO
from pathlib import Path
from typing import Final

from asyncjob_bench.errors import BenchError
from asyncjob_bench.harness.site import Site
from asyncjob_bench.harness.space import OPERATOR
from asyncjob_bench.parts.flow import run_flow, start_stack
from asyncjob_bench.parts.part import Scale
from asyncjob_bench.stats.breakdown import api_server_shares, area_shares
from asyncjob_bench.stats.results import Row

WORKER: Final = "worker-0"
API_SERVER: Final = "kube-apiserver.pprof"
SECONDS: Final = 10
SPARE_SECONDS: Final = 30.0
LINES: Final = 40
EVERY_FUNCTION: Final = ("-nodecount=1000000", "-nodefraction=0", "-edgefraction=0")


def take_profiles(site: Site, scale: Scale, out: Path) -> tuple[str, dict[str, list[Row]]]:
    """Let jobs flow; leave the profiles in `out`.

    Returns the heads of those of Python, and tables of what the API server and they do.
    """
    go = _go()
    files = {name: out / f"{name}.pstats" for name in (OPERATOR, WORKER)}
    out.mkdir(parents=True, exist_ok=True)
    _flow(site, scale, {}, _api_server(site, out / API_SERVER))
    _flow(site, scale, files, nullcontext())
    heads = [f"{name}\n\n{_head(file)}" for name, file in files.items()]
    times = {name: pstats.Stats(str(file)).stats for name, file in files.items()}  # type: ignore[attr-defined]
    seen = f"API server: go tool pprof -top {out / API_SERVER}"
    told = {
        "api-server": api_server_shares(_top(go, out / API_SERVER)),
        "processes": area_shares(times),
    }
    return "\n".join([*heads, seen]), told


def _flow(
    site: Site, scale: Scale, files: dict[str, Path], watched: AbstractContextManager[None]
) -> None:
    """Let jobs flow, some before `watched` begins; processes leave profiles in the files."""
    with site.space("profile") as space:
        space.profiles = files
        with start_stack(site, space, workers=scale.workers, slots=scale.slots) as here:
            run_flow(here, scale.warm_up, warm_up=0, prefix="before-")
            with watched:
                run_flow(here, scale.jobs, warm_up=0)
            here.stop()


def _go() -> str:
    found = shutil.which("go")
    if found is None:
        raise BenchError("Go reads the API server's profile, and there is no `go` on PATH")
    return found


def _top(go: str, file: Path) -> str:
    command = [go, "tool", "pprof", "-top", "-cum", *EVERY_FUNCTION, str(file)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@contextmanager
def _api_server(site: Site, file: Path) -> Iterator[None]:
    """Have the API server take a profile of itself meanwhile."""
    path = f"/debug/pprof/profile?seconds={SECONDS}"
    with ThreadPoolExecutor(1) as pool:
        answer: Future[bytes] = pool.submit(site.read, path, SECONDS + SPARE_SECONDS)
        yield
        file.write_bytes(answer.result())


def _head(file: Path) -> str:
    text = StringIO()
    pstats.Stats(str(file), stream=text).sort_stats("tottime").print_stats(LINES)
    return text.getvalue()
