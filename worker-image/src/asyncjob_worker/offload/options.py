"""The command line options about stores; what is wrong with one is said before anything starts."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import click
import orjson

from asyncjob.offload import Address, AddressError, DriverMissingError
from asyncjob.offload.drivers import check_driver
from asyncjob.offload.store import MAX_OBJECT_BYTES, REQUEST_TIMEOUT_SECONDS
from asyncjob_worker.offload.config import OffloadSettings

_MAX_URL_LENGTH: Final = 1024
"""Leaves room for what is appended to it."""


class _FolderUrl(click.ParamType[Address]):
    name = "url"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Address:
        try:
            folder = Address.folder(str(value))
        except AddressError as error:
            self.fail(str(error), param, ctx)
        if len(str(folder)) > _MAX_URL_LENGTH:
            self.fail(f"at most {_MAX_URL_LENGTH} characters", param, ctx)
        return folder


class _JsonOptions(click.ParamType[Mapping[str, Any]]):
    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Mapping[str, Any]:
        try:
            options = orjson.loads(value)
        except orjson.JSONDecodeError:
            options = None
        if not isinstance(options, dict):
            # Not repeated: people put credentials there.
            self.fail('it has to be a JSON object, such as {"endpoint_url": "…"}', param, ctx)
        return options


_OFFLOAD_OPTIONS: Final = (
    click.option(
        "--offload-url",
        type=_FolderUrl(),
        show_default="none",
        help="Folder in a store for larger results, such as `s3://bucket/jobs`, "
        "`file:///var/lib/asyncjob`.",
    ),
    click.option(
        "--offload-options",
        type=_JsonOptions(),
        show_default="none",
        help="Options of that store's fsspec driver, as a JSON object; no credentials.",
    ),
    click.option(
        "--offload-limit",
        type=click.IntRange(min=0),
        default=MAX_OBJECT_BYTES,
        show_default=True,
        help="Largest offloaded result, and largest payload from elsewhere, in bytes.",
    ),
    click.option(
        "--offload-timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=REQUEST_TIMEOUT_SECONDS,
        show_default=True,
        help="Seconds until a request to the store is given up, and made anew.",
    ),
    click.option(
        "--payload-prefix",
        type=_FolderUrl(),
        multiple=True,
        show_default="the namespace's own in `--offload-url`",
        help="Folder that payloads may be read from; repeatable, in the variable separated by "
        "spaces.",
    ),
)


def offload_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, which gets them as one argument `offload`."""

    @functools.wraps(command)
    def run(
        *args: Any,
        offload_url: Address | None,
        offload_options: Mapping[str, Any] | None,
        offload_limit: int,
        offload_timeout: float,
        payload_prefix: tuple[Address, ...],
        **kwargs: Any,
    ) -> None:
        if offload_options is not None and offload_url is None:
            raise click.UsageError(
                "--offload-options needs --offload-url, whose driver they are for"
            )
        settings = OffloadSettings(
            offload_url, payload_prefix, offload_options or {}, offload_limit, offload_timeout
        )
        _check_drivers(settings)
        command(*args, offload=settings, **kwargs)

    for option in reversed(_OFFLOAD_OPTIONS):
        run = option(run)
    return run


def _check_drivers(settings: OffloadSettings) -> None:
    try:
        for protocol in sorted(settings.protocols()):
            check_driver(protocol)
    except DriverMissingError as error:
        raise click.ClickException(str(error)) from error
