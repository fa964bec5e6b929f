"""A bill of materials is held against what was to be installed."""

from typing import Any

from asyncjob_dev.supply import bill_problems, pins, without_local_paths

REQUIREMENTS = """\
aiohttp==3.14.5 \\
    --hash=sha256:00
    # via x
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:00
Typing_Extensions==4.1 \\
    --hash=sha256:00
uvicorn[standard]==0.5 \\
    --hash=sha256:00
"""


def bill(**versions: str) -> Any:
    components = [{"name": name, "version": version} for name, version in versions.items()]
    return {"components": components, "dependencies": [{"ref": "a"}]}


WHOLE = {"aiohttp": "3.14.5", "typing_extensions": "4.1", "uvicorn": "0.5", "asyncjob-sdk": "1"}


def test_pins_are_read_without_those_of_other_platforms() -> None:
    assert pins(REQUIREMENTS) == {"aiohttp": "3.14.5", "typing-extensions": "4.1", "uvicorn": "0.5"}


def test_what_is_missing_or_differs_is_named() -> None:
    own = {"asyncjob-sdk": "1"}
    assert list(bill_problems(bill(**WHOLE), REQUIREMENTS, own)) == []
    other = bill(**{**WHOLE, "aiohttp": "3.0"})
    del other["components"][-1]
    del other["dependencies"]
    assert list(bill_problems(other, REQUIREMENTS, own)) == [
        "aiohttp: 3.14.5 was to be installed, the bill has 3.0",
        "asyncjob-sdk: 1 was to be installed, the bill has None",
        "the bill does not say what depends on what",
    ]


def test_places_on_the_machine_that_made_it_are_left_out() -> None:
    refs = [{"type": "distribution", "url": "file:///tmp/x.whl"}, {"type": "vcs", "url": "https:"}]
    made = {"components": [{"name": "a", "externalReferences": refs}, {"name": "b"}]}
    kept = [{"name": "a", "externalReferences": refs[1:]}, {"name": "b"}]
    assert without_local_paths(made) == {"components": kept}
