"""What a development server prints: whole lines, from the logs only what is new."""

import io
from pathlib import Path

from asyncjob_dev.environment import EnvironmentPaths, EnvironmentSettings
from asyncjob_dev.server.terminal import LogFollower, Terminal, guide


def followed(path: Path, *writes: bytes) -> list[str]:
    shown = io.StringIO()
    follower = LogFollower({"worker-1": path, "w": path.with_name("none")}, Terminal(shown))
    for data in writes:
        with path.open("ab") as log:
            log.write(data)
        follower._look()
    return shown.getvalue().splitlines()


def test_each_line_is_shown_with_the_name_before_it(tmp_path: Path) -> None:
    assert followed(tmp_path / "log", b"one\ntwo\n") == ["worker-1 | one", "worker-1 | two"]


def test_a_line_is_shown_when_it_is_complete(tmp_path: Path) -> None:
    assert followed(tmp_path / "log", b"a", b"b", b"c\nd") == ["worker-1 | abc"]


def test_what_was_there_before_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"old\n")
    assert followed(tmp_path / "log", b"new\n") == ["worker-1 | new"]


def test_bytes_that_are_no_text_are_shown_as_far_as_they_are(tmp_path: Path) -> None:
    assert followed(tmp_path / "log", b"a\xffb\r\n") == ["worker-1 | a\ufffdb"]


def test_a_terminal_that_has_gone_away_stops_nothing() -> None:
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    terminal = Terminal(Gone())
    terminal.say("one")
    terminal.say("two")


def shown_guide(*types: str, has_kubectl: bool = True) -> str:
    folder = Path("/project/.asyncjob")
    return guide(
        EnvironmentPaths(folder),
        EnvironmentSettings(gateway_port=8081),
        folder.parent,
        job_types=list(types),
        seconds=7.4,
        has_kubectl=has_kubectl,
    )


def test_the_guide_says_how_to_use_what_runs() -> None:
    text = shown_guide("greet", "wave")
    assert "Ready after 7 s." in text
    assert "http://127.0.0.1:8081/dashboard/" in text
    assert "greet, wave" in text
    assert "export KUBECONFIG=$PWD/.asyncjob/kubeconfig\n" in text
    assert "asyncjob submit greet --wait" in text


def test_who_has_no_kubectl_is_given_one() -> None:
    text = shown_guide("greet", has_kubectl=False)
    assert "export KUBECONFIG=$PWD/.asyncjob/kubeconfig PATH=$PWD/.asyncjob/bin:$PATH\n" in text


def test_many_job_types_are_cut_short() -> None:
    assert "a, b, c, d, e, f, …\n" in shown_guide(*"abcdefg")
    assert "a, b, c, d, e, f\n" in shown_guide(*"abcdef")
