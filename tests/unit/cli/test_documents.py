"""Files of jobs and payloads."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from asyncjob.cli.input import documents, yaml_loader
from asyncjob.cli.input.documents import (
    Document,
    DocumentError,
    job_documents,
    parse_documents,
    read_documents,
)

MANIFEST = """\
apiVersion: asyncjob.dev/v1alpha1
kind: AsyncJob
metadata: {name: report-42, labels: {team: mail}}
spec: {type: report.csv, notBefore: 2026-11-21T20:00:00Z}
"""


def values(text: str, suffix: str = "") -> list[object]:
    return [one.value for one in parse_documents("x", text, suffix)]


def jobs(text: str, namespace: str | None = None) -> list[object]:
    return [
        job.value for one in parse_documents("x", text, "") for job in job_documents(one, namespace)
    ]


def test_what_a_text_is_shows_in_its_suffix_or_in_itself() -> None:
    assert values('{"a": 1}', ".json") == values('{"a":\n 1}') == values("a: 1") == [{"a": 1}]
    assert values('{"a": 1}\n\n{"a": 2}\n') == values('{"a": 1}\n{"a": 2}', ".jsonl")
    assert values("a: 1\n---\n---\na: 2", ".yaml") == [{"a": 1}, {"a": 2}]
    assert values('"only text"') == ["only text"]


def test_times_in_yaml_stay_the_text_that_they_are() -> None:
    assert values("at: 2026-11-21T20:00:00Z\nday: 2026-11-21") == [
        {"at": "2026-11-21T20:00:00Z", "day": "2026-11-21"}
    ]


def test_folders_are_read_by_name_with_their_folders(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("2")
    (tmp_path / "a.jsonl").write_text("0\n1\n")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "d.json").write_text("\ufeff3", encoding="utf-8")
    (tmp_path / "readme.txt").write_text("no job")
    found = list(read_documents([str(tmp_path), "-"], io.StringIO("4")))
    assert [one.value for one in found] == [0, 1, 2, 3, 4]
    assert found[1].location == f"{tmp_path / 'a.jsonl'}:2"
    assert found[-1].location == "stdin"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.json", b"", "empty"),
        ("x.json", b"{", "x.json: '{' is not JSON"),
        ("x.jsonl", b"1\nno\n", "x.jsonl:2: 'no' is not JSON"),
        ("x.json", b'[{"a": 1, "b": 2, "a": 3}]', "x.json: the key 'a' is given twice"),
        ("x.jsonl", b'1\n{"a": 1, "a": 1}\n', "x.jsonl:2: the key 'a' is given twice"),
        ("x.yaml", b"- a: {b: 1, b: 2}", "x.yaml: .*the key 'b' is given twice.*line 1"),
        ("x.yaml", b"1: x\n'1': y", "x.yaml: .*the key '1' is given twice.*line 2"),
        ("x.yaml", b"1: x\n0x1: y", "x.yaml: .*the key '0x1' is given twice.*line 2"),
        ("x.yaml", b"yes: x\ntrue: y", "x.yaml: .*the key 'true' is given twice.*line 2"),
        ("x.yaml", b"1: x\nyes: y", "x.yaml: .*the key 'yes' is given twice.*line 2"),
        ("x.yaml", b"a: [", "x.yaml: not YAML"),
        ("x.yaml", b"a: !!python/object:os.system {}", "not YAML"),
        ("x.json", b"\xff\xfe", "not UTF-8"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DocumentError, match=said):
        list(read_documents([str(tmp_path / name)], io.StringIO()))


def test_a_file_that_is_not_there_and_a_folder_without_jobs_are_told(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="No such file"):
        list(read_documents([str(tmp_path / "gone.json")], io.StringIO()))
    with pytest.raises(DocumentError, match=r"no \.json, \.jsonl"):
        list(read_documents([str(tmp_path)], io.StringIO()))


def test_manifests_submissions_and_lists_of_either_are_jobs() -> None:
    fields = {
        "type": "report.csv",
        "notBefore": "2026-11-21T20:00:00Z",
        "name": "report-42",
        "labels": {"team": "mail"},
    }
    assert jobs(MANIFEST) == [fields]
    assert jobs('[{"type": "a"}, {"type": "b"}]') == [{"type": "a"}, {"type": "b"}]
    assert jobs("kind: List\nitems:\n- {type: a}\n- {type: b}") == [{"type": "a"}, {"type": "b"}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MANIFEST.replace("AsyncJob", "AsyncQueue"), "AsyncQueue is not asyncjob.dev/v1alpha1"),
        (MANIFEST.replace("/v1alpha1", "/v9"), "use kubectl apply -f"),
        (MANIFEST.replace("labels", "annotations"), "metadata.annotations cannot be submitted"),
        (MANIFEST.replace("labels: {team: mail}", "namespace: mail"), "pass -n mail"),
        ("3", "pass its TYPE first"),
        ('[{"type": "a"}, 3]', r"x\[2\]: a job is an object"),
    ],
)
def test_what_is_no_job_says_the_way_out(text: str, said: str) -> None:
    with pytest.raises(DocumentError, match=said):
        jobs(text)


def test_a_manifest_of_the_namespace_asked_for_is_taken() -> None:
    text = MANIFEST.replace("labels: {team: mail}", "namespace: mail")
    assert len(jobs(text, "mail")) == 1


def test_documents_know_where_they_come_from() -> None:
    assert list(parse_documents("f", "1\n---\n2", ".yaml"))[1] == Document("f (document 2)", 2)


@pytest.mark.parametrize("suffix", [".jsonl", ""])
def test_json_lines_end_at_line_feeds_alone(suffix: str) -> None:
    text = '{"a": "x\u2028y"}\r\n{"a": "x\u0085y"}\n'
    assert [one.value for one in parse_documents("x", text, suffix)] == [
        {"a": "x\u2028y"},
        {"a": "x\u0085y"},
    ]


def laughs(levels: int) -> str:
    """Return nine aliases of nine aliases of … ."""
    lists = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, levels + 1)]
    return "\n".join(["l0: &l0 ha", *lists])


def merges(levels: int) -> str:
    """Return mappings that merge nine mappings that merge nine … ."""
    maps = [f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}" for n in range(1, levels + 1)]
    return "\n".join(["m0: &m0 {ha: ha}", *maps])


HOSTILE = {
    "aliases of aliases": (laughs(40), "once its aliases are written out"),
    "merged mappings": (merges(40), "once its aliases are written out"),
    "one long text often": (
        f"a: &a {'x' * 2**20}\nb: [*a, *a, *a, *a]",
        "once its aliases are written out",
    ),
    "many documents": ("\n---\n".join([laughs(6)] * 9), "once its aliases are written out"),
    "a loop": ("a: &a [*a]", "refers to a value that contains it"),
    "aliases that nest": (
        "\n".join(["l0: &l0 []", *(f"l{n}: &l{n} [*l{n - 1}]" for n in range(1, 400))]),
        "levels deep",
    ),
    "levels beyond Python's own": ("[" * 500 + "]" * 500, "nested more than 300 levels deep"),
    "a number in base 60": (f"a: 1{':59' * 200_000}", "number of more than 100"),
    "a float in base 60": (f"a: 1{':59' * 200_000}.5", "number of more than 100"),
    "a long text": (f"a: {'x' * 2**22}", "more than 4 MiB of YAML"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_yaml_that_says_more_than_it_seems_is_refused_soon(what: str) -> None:
    text, said = HOSTILE[what]
    with pytest.raises(DocumentError, match=said):
        values(text, ".yaml")


@pytest.mark.parametrize("kind", ["binary", "omap", "pairs", "set", "timestamp"])
def test_yaml_that_json_does_not_have_is_refused_and_never_turned_into_something_else(
    kind: str,
) -> None:
    with pytest.raises(DocumentError, match=f"JSON has no !!{kind}; write it as text"):
        values(f"payload: !!{kind} x", ".yaml")


@pytest.mark.parametrize("text", ['!!float ""', "!!bool maybe", "!!int x", "!!seq {a: 1}"])
def test_a_tag_before_what_it_does_not_fit_is_told_as_an_error_of_the_file(text: str) -> None:
    with pytest.raises(DocumentError, match="not YAML: "):
        values(f"payload: {text}", ".yaml")


def test_the_tag_that_does_not_fit_is_named_however_deep_it_stands() -> None:
    with pytest.raises(DocumentError, match=r"the tag !!int does not fit .* \(line 2\)"):
        values('payload:\n  rows: [{count: !!int ""}]', ".yaml")


def test_nested_aliases_take_little_memory(tmp_path: Path) -> None:
    """Where they are written out, the process would die of this limit."""
    (tmp_path / "jobs.yaml").write_text(laughs(12))
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (512 * 2**20,) * 2);"
        "from asyncjob.cli.entry import main; main(['submit', 'report.csv', '-f', 'jobs.yaml'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"jobs.yaml: more than 4 MiB once its aliases are written out" in done.stderr


def test_aliases_and_merges_within_reason_are_read() -> None:
    text = "a: &a {x: 1, y: &y [2]}\nb: {<<: *a, x: 3}\nc: *y\n---\nd: &d 1\ne: *d"
    shared = {"x": 1, "y": [2]}
    assert values(text) == [{"a": shared, "b": {**shared, "x": 3}, "c": [2]}, {"d": 1, "e": 1}]


def test_files_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_TOTAL_BYTES", 2**20)
    half = '"' + "x" * (2**19 - 2) + '"'
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(half)
    assert len(list(read_documents([str(tmp_path)], io.StringIO()))) == 2
    with pytest.raises(DocumentError, match=r"stdin: more than 1 MiB in one call; .*in parts"):
        list(read_documents([str(tmp_path), "-"], io.StringIO("1")))
    with pytest.raises(DocumentError, match=r"/dev/zero: more than 1 MiB"):
        list(read_documents(["/dev/zero"], io.StringIO()))


def test_the_bound_of_yaml_is_within_that_of_files() -> None:
    assert yaml_loader.MAX_CHARACTERS < documents.MAX_TOTAL_BYTES
