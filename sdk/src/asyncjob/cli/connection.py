"""Where the jobs are.

The options that name a cluster and namespace (as in kubectl) or a gateway, and the client they
open. The clients are slow to import, so they are imported when a connection is opened.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import click

from asyncjob.cli.command_classes import CONNECTION_SECTION, SectionedOption
from asyncjob.names import is_namespace

Callback = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """What was said about where to go; None: as kubectl would."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None
    server: str | None = None
    token: str | None = None
    everywhere: bool | None = None
    """Whether all namespaces are meant; only commands that list ask for it."""

    def with_defaults(self, defaults: "ConnectionOptions") -> "ConnectionOptions":
        """Return what was said here, and the other's where nothing was."""
        merged: dict[str, Any] = {
            part.name: _first_given(getattr(self, part.name), getattr(defaults, part.name))
            for part in fields(ConnectionOptions)
        }
        return ConnectionOptions(**merged)

    def validated(self) -> "ConnectionOptions":
        """Return the same; raises UsageError where it means two places at once."""
        if self.server and (self.context or self.kubeconfig):
            raise click.UsageError(
                "--server is for a gateway, --context and --kubeconfig are for a cluster: "
                "use one of them (--server '' overrides ASYNCJOB_SERVER)"
            )
        if self.namespace and not is_namespace(self.namespace):
            raise click.UsageError(f"--namespace: {self.namespace!r} is not a valid namespace name")
        if self.everywhere:
            self._check_all_namespaces()
        return self

    def _check_all_namespaces(self) -> None:
        if self.namespace:
            raise click.UsageError("use --namespace or --all-namespaces, not both")
        if self.server:
            raise click.UsageError(
                "a gateway lists one namespace at a time: use --namespace instead of "
                "--all-namespaces, or connect to the cluster itself (--server '')"
            )


def _first_given(value: object, default: object) -> object:
    return default if value is None else value


_FLAGS: Final[tuple[tuple[tuple[str, ...], str, str, str], ...]] = (
    (("--namespace", "-n"), "NAME", "Namespace. Default: the context's.", ""),
    (("--context",), "NAME", "Context of the kubeconfig. Default: the current one.", ""),
    (
        ("--kubeconfig",),
        "FILE",
        "Default: KUBECONFIG, the pod's service account, ~/.kube/config.",
        "",
    ),
    (("--server",), "URL", "Use this gateway instead of the API server.", "ASYNCJOB_SERVER"),
    (("--token",), "TOKEN", "Bearer token for the gateway.", "ASYNCJOB_TOKEN"),
)


def connection_options(*, reads_environment: bool) -> Callable[[Callback], Callback]:
    """Return a decorator that adds the options; only the root reads their variables."""

    def decorate(function: Callback) -> Callback:
        for flags, metavar, text, variable in reversed(_FLAGS):
            function = click.option(
                *flags,
                cls=SectionedOption,
                section=CONNECTION_SECTION,
                metavar=metavar,
                help=f"{text}  [env: {variable}]" if variable else text,
                envvar=variable if reads_environment and variable else None,
            )(function)
        return function

    return decorate


def pop_connection_options(options: dict[str, Any]) -> ConnectionOptions:
    """Take the options of a place out of all that was given."""
    return ConnectionOptions(
        **{part.name: options.pop(part.name, None) for part in fields(ConnectionOptions)}
    )


def with_connection(function: Callback) -> Callback:
    """Add the options of a place to a command, which is given a `connection`."""

    @functools.wraps(function)
    def call(**options: Any) -> Any:
        cli = click.get_current_context().obj
        connection = pop_connection_options(options).with_defaults(cli.root).validated()
        return function(connection=connection, **options)

    return connection_options(reads_environment=False)(call)


def with_all_namespaces(function: Callback) -> Callback:
    """Add the options of a place to a command that can list all namespaces at once."""
    return click.option(
        "--all-namespaces",
        "-A",
        "everywhere",
        cls=SectionedOption,
        section=CONNECTION_SECTION,
        is_flag=True,
        default=None,
        help="All namespaces; not with a gateway.",
    )(with_connection(function))


if TYPE_CHECKING:
    from asyncjob.client.api import Jobs


RETRY_SECONDS: Final = 8.0
"""Seconds for which a server that is away is tried again: a person sits there."""


@contextmanager
def connect(connection: ConnectionOptions) -> "Iterator[Jobs]":
    """Open the client that the place asks for; raises NoClusterError where there is none."""
    if connection.server:
        from asyncjob.client import JobsClient

        with JobsClient(
            connection.server,
            token=connection.token,
            namespace=connection.namespace,
            patience=RETRY_SECONDS,
        ) as gateway:
            yield gateway
    else:
        from asyncjob.client import KubernetesJobsClient

        with KubernetesJobsClient.connect(
            kubeconfig=connection.kubeconfig,
            namespace=connection.namespace,
            context=connection.context,
            patience=RETRY_SECONDS,
        ) as cluster:
            yield cluster
