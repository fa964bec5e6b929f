"""The picture of a job's life has every phase and every transition, and is up to date."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.transitions import TRANSITIONS
from asyncjob_dev.reference.diagram import PLACES, lifecycle_picture

FILE = Path(__file__).parents[3] / "docs" / "explanation" / "lifecycle.svg"
SVG = "{http://www.w3.org/2000/svg}"


def test_each_phase_has_a_box_and_each_transition_an_arrow() -> None:
    picture = ET.fromstring(lifecycle_picture())
    titles = [one.text for one in picture.iterfind(f"{SVG}path/{SVG}title")]
    assert titles == [f"{one.source.value} to {one.target.value}" for one in TRANSITIONS]
    names = {one.text for one in picture.iterfind(f"{SVG}text")}
    assert {phase.value for phase in Phase} <= names
    assert set(PLACES) == set(Phase)


def test_no_arrow_begins_or_ends_inside_of_a_box() -> None:
    for x, y in re.findall(r'd="M(\d+) (\d+)Q', lifecycle_picture()):
        inside = [
            phase
            for phase, (across, down) in PLACES.items()
            if abs(int(x) - across) < 58 and abs(int(y) - down) < 19
        ]
        assert inside == []


def test_the_file_is_what_the_table_makes_it() -> None:
    assert FILE.read_text(encoding="utf-8") == lifecycle_picture()
