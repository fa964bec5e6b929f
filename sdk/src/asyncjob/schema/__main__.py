"""`python -m asyncjob.schema`: write the generated files, or check them for drift."""

from pathlib import Path

import click

from asyncjob.rules.mutation import MUTATING
from asyncjob.schema.manifests import crds_folder, docs_folder, mutating_folder

FOLDER_TYPE = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.option("--out", type=FOLDER_TYPE, default=Path("crds"), show_default=True)
@click.option(
    "--chart", type=FOLDER_TYPE, default=Path("charts/asyncjob/files/crds"), show_default=True
)
@click.option("--docs", type=FOLDER_TYPE, default=Path("docs/reference"), show_default=True)
@click.option("--check", is_flag=True, help="Change nothing; fail if a file is out of date.")
def main(out: Path, chart: Path, docs: Path, *, check: bool) -> None:
    """Generate the CRDs and policies, the chart's copy of them, and the page of rules."""
    wanted = {
        out: crds_folder(),
        out / MUTATING: mutating_folder(),
        chart: crds_folder(),
        chart / MUTATING: mutating_folder(),
        docs: docs_folder(),
    }
    if not check:
        for at, folder in wanted.items():
            folder.write(at)
        return
    outdated = [str(at / name) for at, folder in wanted.items() for name in folder.outdated(at)]
    if outdated:
        raise click.ClickException(f"out of date: {', '.join(outdated)}; run make generate")


if __name__ == "__main__":
    main()
