"""The comment beside each limit."""

import pytest

from asyncjob_bench.stats.limits import Limit
from asyncjob_bench.stats.results import Spread
from asyncjob_bench.stats.tables import annotate_text, limit_comment

RATIO = Limit("ratio", "at_least", 0.7)
MEMORY = Limit("memory", "at_most", 800.0, unit="MiB")
WRITES = Limit("writes", "exactly", 3.0)


@pytest.mark.parametrize(
    ("limit", "values", "expected"),
    [
        (RATIO, (0.8, 0.88), "# Measured: mean 0.840 (0.800 to 0.880); headroom 20%."),
        (RATIO, (0.63,), "# Measured: mean 0.630; MISSED by 10%."),
        (MEMORY, (400.0,), "# Measured: mean 400 MiB; headroom 50%."),
        (MEMORY, (880.0,), "# Measured: mean 880 MiB; MISSED by 10%."),
        (WRITES, (3.0,), "# Measured: mean 3; no headroom, it is a count."),
    ],
)
def test_a_remark_says_mean_spread_and_room(
    limit: Limit, values: tuple[float, ...], expected: str
) -> None:
    assert limit_comment(limit, Spread(values)) == expected


TEXT = """\
# About all of them.
[bars]
# What it means.
# Measured: long ago.
memory = { at_most = 800 }
writes = { exactly = 3 }
# Measured: never.
other = { at_most = 1 }
"""


def test_old_remarks_are_replaced_and_other_comments_stay() -> None:
    limits = {it.key: it for it in (MEMORY, WRITES)}
    spreads = {"memory": Spread((400.0,)), "writes": Spread((3.0,)), "other": Spread((9.0,))}
    assert annotate_text(TEXT, limits, spreads).splitlines() == [
        "# About all of them.",
        "[bars]",
        "# What it means.",
        "# Measured: mean 400 MiB; headroom 50%.",
        "memory = { at_most = 800 }",
        "# Measured: mean 3; no headroom, it is a count.",
        "writes = { exactly = 3 }",
        "# Measured: never.",
        "other = { at_most = 1 }",
    ]
