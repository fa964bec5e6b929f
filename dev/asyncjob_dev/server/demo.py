"""`asyncjob dev --demo`: the demo of the repository, with the examples that come along."""

import shutil
from pathlib import Path

from asyncjob_dev.bundled import bundled
from asyncjob_dev.demo import run_demo
from asyncjob_dev.server.folder import make_folder


def play(folder: Path) -> bool:
    """Play it; returns whether all went as it should. The report stays in `folder`/demo."""
    make_folder(folder)
    project = folder / "demo"
    examples = project / "examples"
    shutil.copytree(bundled("examples"), examples, dirs_exist_ok=True)
    return run_demo(project, examples)
