from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.views.job_tree import (
    MAX_ANCESTORS,
    MAX_CHILDREN_PER_JOB,
    MAX_TREE_JOBS,
    JobTreeRow,
    LinkedJob,
    job_tree,
)
from support.objects.rest_jobs import NOW, summary


def relative(name: str, parent: str = "", rerun_of: str = "") -> LinkedJob:
    return LinkedJob(summary(name), parent, rerun_of)


def tree(name: str, *relatives: LinkedJob) -> list[JobTreeRow]:
    return job_tree(name, relatives, Links(), NOW)


def outline(members: list[JobTreeRow]) -> list[str]:
    return [
        "  " * one.depth + one.row.id + (f" {one.relation}" if one.relation else "")
        for one in members
    ]


def test_the_whole_tree_is_shown_from_any_of_its_jobs() -> None:
    jobs = (
        relative("a"),
        relative("a-1", "a"),
        relative("a-1-1", "a-1"),
        relative("a-2", "a"),
        relative("a-r1", rerun_of="a"),
        relative("stranger"),
    )
    wanted = ["a", "  a-1 child", "    a-1-1 child", "  a-2 child", "  a-r1 rerun"]

    assert outline(tree("a", *jobs)) == wanted
    assert outline(tree("a-1-1", *jobs)) == wanted
    assert [one.row.id for one in tree("a-2", *jobs) if one.current] == ["a-2"]


def test_a_job_without_relatives_has_no_tree() -> None:
    assert tree("a", relative("a"), relative("b", "gone")) == []


def test_a_rerun_of_a_child_hangs_below_that_child() -> None:
    jobs = (relative("a"), relative("a-1", "a"), relative("a-1-r1", "a", rerun_of="a-1"))

    assert outline(tree("a", *jobs)) == ["a", "  a-1 child", "    a-1-r1 rerun"]


def test_of_many_children_some_are_shown_and_the_others_counted() -> None:
    jobs = [relative("a"), *(relative(f"c-{number:03}", "a") for number in range(40))]

    members = tree("c-039", *jobs)

    assert len(members) == 1 + MAX_CHILDREN_PER_JOB
    assert members[0].more == 40 - MAX_CHILDREN_PER_JOB
    assert members[0].more_url == "/dashboard/jobs?parent=a"
    assert [one.row.id for one in members if one.current] == ["c-039"]


def test_a_tree_is_bounded() -> None:
    jobs = [relative("a")]
    jobs += [relative(f"b{one}", "a") for one in range(20)]
    jobs += [relative(f"b{one}-{two}", f"b{one}") for one in range(20) for two in range(20)]

    assert len(tree("a", *jobs)) == MAX_TREE_JOBS


def test_in_however_large_a_tree_the_job_itself_is_shown_with_its_line_and_its_children() -> None:
    names = [f"{number:02}" for number in range(20)]
    jobs = [relative("a"), *(relative(one, "a") for one in names)]
    jobs += [relative(f"{one}-{two}", one) for one in names for two in names]
    jobs += [relative("19-19-0", "19-19"), relative("19-19-1", "19-19")]

    shown = tree("19-19", *jobs)

    assert len(shown) == MAX_TREE_JOBS
    assert [one.row.id for one in shown if one.current] == ["19-19"]
    assert {"a", "19", "19-19-0", "19-19-1"} <= {one.row.id for one in shown}
    told = sum(one.more for one in shown)
    below = [one for one in jobs if one.parent in {member.row.id for member in shown}]
    assert told == len(below) - (MAX_TREE_JOBS - 1)


def test_a_line_of_many_generations_is_cut_above() -> None:
    jobs = [relative(f"j{n:03}", f"j{n - 1:03}" if n else "") for n in range(150)]

    shown = tree("j100", *jobs)

    assert [one.row.id for one in shown if one.current] == ["j100"]
    assert len(shown) == MAX_ANCESTORS + 49
    assert shown[0].row.id == f"j{100 - MAX_ANCESTORS + 1:03}"


def test_jobs_that_name_each_other_end_no_loop() -> None:
    assert len(tree("a", relative("a", "b"), relative("b", "a"))) == 2
    assert tree("a", relative("a", "a")) == []
    ring = [relative(name, above) for name, above in ("ab", "bc", "ca")]
    assert sorted(one.row.id for one in tree("b", *ring)) == ["a", "b", "c"]
