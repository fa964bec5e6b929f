"""Puts the built-in handlers together, by what the environment allows."""

from collections.abc import Mapping

from asyncjob import WorkerApp
from asyncjob_worker.builtin import echo, pause
from asyncjob_worker.builtin.errors import BuiltInError
from asyncjob_worker.builtin.programs.handler import exec_handler
from asyncjob_worker.builtin.settings import read_settings
from asyncjob_worker.builtin.web.handler import http_handler


def build_app(environ: Mapping[str, str]) -> WorkerApp:
    """Return the app; raises ConfigError that names the variable that cannot be used.

    `exec` is only in it where programs are allowed: jobs of that type are then left to workers that
    may run them, instead of being refused by those that may not.
    """
    settings = read_settings(environ)
    app = WorkerApp()
    app.handler("echo")(echo.echo)
    app.handler("sleep")(pause.sleep)
    app.handler("http")(http_handler(settings.hosts))
    if settings.programs.paths:
        app.handler("exec")(exec_handler(settings.programs))
    for kind in BuiltInError.__subclasses__():
        app.categorize(kind, kind.category)
    return app
