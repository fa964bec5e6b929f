"""`make mutants` as a program: its small form, and what becomes of a module without an import."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from asyncjob_dev.mutants.trials import TESTS, own_tests

MODULE = "operator/src/asyncjob_operator/core/ages.py"
CODE = """def is_old(age: int, most: int) -> bool:
    return age > most
"""
LOOKS = """from asyncjob_operator.core.ages import is_old


def test_what_is_older_than_the_most_is_old() -> None:
    assert is_old(3, 2)
    assert not is_old(2, 2)
    assert not is_old(1, 2)
"""
LOOKS_AWAY = """from asyncjob_operator.core.ages import is_old


def test_it_has_an_answer() -> None:
    assert is_old(3, 2) is not None
"""
FROM_AFAR = """from asyncjob_operator.core import ages


def test_what_is_older_than_the_most_is_old() -> None:
    assert [ages.is_old(age, 2) for age in (1, 2, 3)] == [False, False, True]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, {MODULE: CODE, "tests/unit/schema/test_generated.py": ""})
    write(tmp_path, {"tests/mutants.toml": "", "tests/unit/operator/test_afar.py": FROM_AFAR})
    for package in ("asyncjob_operator", "asyncjob_operator/core"):
        write(tmp_path, {f"operator/src/{package}/__init__.py": ""})
    return tmp_path


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def run_mutants(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "asyncjob_dev.mutants", "--seed=1", *options],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "operator" / "src")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_only_tests_that_import_from_the_module_are_its_own(root: Path) -> None:
    write(root, {"tests/unit/operator/test_ages.py": LOOKS})
    assert own_tests(root, MODULE) == ["tests/unit/operator/test_ages.py"]


def test_a_module_whose_own_tests_notice_passes(root: Path) -> None:
    write(root, {"tests/unit/operator/test_ages.py": LOOKS})
    done = run_mutants(root, "--small")
    assert done.returncode == 0, done.stderr
    killed, _, tried, *_ = done.stdout.splitlines()[1].split()
    assert killed == tried != "0"


def test_a_module_whose_own_tests_look_away_fails_though_others_notice(root: Path) -> None:
    write(root, {"tests/unit/operator/test_ages.py": LOOKS_AWAY})
    done = run_mutants(root, "--small")
    assert done.returncode == 1
    assert "TOO FEW" in done.stdout
    assert "1 have fewer than" in done.stderr


LAST_DAY = """from datetime import date

LAST = date(9999, 12, 31)


def is_last(day: date) -> bool:
    return day == LAST
"""
LOOKS_AT_THE_LAST_DAY = """from datetime import date

from asyncjob_operator.core.ages import is_last


def test_the_last_day_is_that_of_the_last_year() -> None:
    assert is_last(date(9999, 12, 31))
    assert not is_last(date(9999, 12, 30))
"""


def test_a_change_with_which_a_module_cannot_be_imported_is_noticed(root: Path) -> None:
    write(root, {MODULE: LAST_DAY, "tests/unit/operator/test_ages.py": LOOKS_AT_THE_LAST_DAY})
    (root / "tests/unit/operator/test_afar.py").unlink()
    for folder in TESTS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    done = run_mutants(root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of     4 killed" in done.stdout
