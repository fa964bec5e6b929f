"""Where results are kept: `benchmarks/out`, and a copy of those that the page shows in docs/."""

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from asyncjob_bench.errors import BenchError
from asyncjob_bench.stats.results import Results
from asyncjob_dev.binaries.pins import read_pin

BENCHMARKS: Final = Path(__file__).parents[1]
OUT: Final = BENCHMARKS / "out"
LATEST: Final = "latest.json"
SOME_PARTS: Final = "parts.json"
"""The last run of some parts only, which is the latest run as well until there is another."""

CURVES: Final = "curves.json"
PROFILE: Final = "profile.json"
PRICES: Final = "prices.json"
VERSIONS: Final = "versions.json"
STORED: Final = (LATEST, CURVES, PROFILE, PRICES, VERSIONS, SOME_PARTS)
LIMITS: Final = BENCHMARKS / "limits.toml"
DOCS: Final = BENCHMARKS.parent / "docs" / "explanation"
SHOWN: Final = DOCS / "performance"
"""Where the page takes results from that somebody has published, and its plots."""


def describe_run(scale: str, parts: Sequence[str], began: datetime) -> dict[str, Any]:
    """Return when, where and what was measured."""
    return {
        "began": began.isoformat(timespec="seconds"),
        "minutes": round((datetime.now(UTC) - began).total_seconds() / 60, 1),
        "scale": scale,
        "parts": list(parts),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "kubernetes": read_pin("kube-apiserver").version,
        "etcd": read_pin("etcd").version,
    }


def write(results: Results, out: Path, name: str) -> Path:
    """Store results as the latest and under their time; returns where the latest is."""
    text = json.dumps(results.to_json(), indent=2, ensure_ascii=False) + "\n"
    stamp = str(results.run["began"]).replace(":", "").replace("+0000", "Z")
    (out / "runs").mkdir(parents=True, exist_ok=True)
    (out / "runs" / f"{stamp}-{name}").write_text(text, encoding="utf-8")
    (out / name).write_text(text, encoding="utf-8")
    return out / name


def read(path: Path) -> Results:
    """Return stored results; raises BenchError that says what to do."""
    try:
        return Results.of_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{path} holds no results ({error!r}): run `make bench` first") from error


def _memory_gib() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
