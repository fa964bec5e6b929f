"""The folder of a development server, `.asyncjob` in the project."""

from pathlib import Path

from asyncjob_dev.files import translate_folder_errors


def make_folder(folder: Path) -> None:
    """Make it, and keep it out of the project's repository."""
    with translate_folder_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
