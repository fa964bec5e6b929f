"""`python -m asyncjob_dev.controlplane`: one control plane in the foreground."""

import threading
from contextlib import suppress
from pathlib import Path

import click

from asyncjob_dev.controlplane.options import ControlPlaneOptions
from asyncjob_dev.controlplane.plane import ControlPlane
from asyncjob_dev.errors import DevError
from asyncjob_dev.signals import unwind_on_signals

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.option("--data-dir", type=FOLDER, help="Keep everything here; a temporary folder if absent.")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port of the API; a free one if absent."
)
@click.option("--controller-manager/--no-controller-manager", default=True, show_default=True)
def main(data_dir: Path | None, port: int | None, *, controller_manager: bool) -> None:
    """Run a Kubernetes control plane until Ctrl-C and print the path of its kubeconfig."""
    options = ControlPlaneOptions(
        data_dir=data_dir, api_port=port, with_controller_manager=controller_manager
    )
    try:
        with unwind_on_signals(), suppress(KeyboardInterrupt), ControlPlane(options) as plane:
            click.echo(plane.kubeconfig)
            click.echo(f"{plane.url} is ready; Ctrl-C stops it", err=True)
            threading.Event().wait()
    except DevError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
