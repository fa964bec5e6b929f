"""Finds the app that `module:app` names; every mistake is one clear line."""

import importlib
import sys
from pathlib import Path

from asyncjob.app import WorkerApp
from asyncjob.errors import ConfigError


def load_app(target: str) -> WorkerApp:
    """Import `module:attribute` (attribute `app` if left out), also from the current directory.

    Raises ConfigError that names what is missing or wrong.
    """
    module_name, _, attribute = target.partition(":")
    app = _attribute(module_name, attribute or "app")
    if not isinstance(app, WorkerApp):
        raise ConfigError(f"{target} is a {type(app).__name__}, not a WorkerApp")
    if not app.handlers:
        raise ConfigError(f'{target} has no handlers: register one with @app.handler("type")')
    return app


def _attribute(module_name: str, attribute: str) -> object:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"cannot import {module_name}: no module named {error.name!r}") from error
    except ImportError as error:
        raise ConfigError(f"cannot import {module_name}: {error}") from error
    if not hasattr(module, attribute):
        raise ConfigError(f"module {module_name} has no {attribute!r}")
    return getattr(module, attribute)
