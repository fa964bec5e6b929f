"""Finds the app that `module:app` names; every mistake is one clear line."""

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from asyncjob.app import WorkerApp
from asyncjob.errors import AsyncJobError, ConfigError


def load_app(target: str) -> WorkerApp:
    """Import `module:attribute` (attribute `app` if left out), also from the current directory.

    Raises ConfigError that names what is missing or wrong.
    """
    module_name, attribute = _split_target(target)
    app = _get_attribute(_import_module(module_name), attribute)
    if not isinstance(app, WorkerApp):
        raise ConfigError(f"{target} is a {type(app).__name__}, not a WorkerApp")
    if not app.handlers:
        raise ConfigError(f'{target} has no handlers: register one with @app.handler("type")')
    app.check()
    return app


def app_folder(target: str) -> Path:
    """Return the folder that the app's outermost package or module lies in, importing nothing.

    Raises ConfigError if there is no such module.
    """
    _add_current_folder()
    name = _split_target(target)[0].partition(".")[0]
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ConfigError(f"cannot import {name}: no module named {name!r}")
    places = spec.submodule_search_locations
    return Path(next(iter(places)) if places else str(spec.origin)).resolve().parent / (
        name if places else ""
    )


def _split_target(target: str) -> tuple[str, str]:
    module_name, _, attribute = target.partition(":")
    if not module_name or module_name.startswith("."):
        raise ConfigError(f"{target!r} names no module: give it as module:attribute")
    return module_name, attribute or "app"


def _add_current_folder() -> None:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def _import_module(module_name: str) -> ModuleType:
    _add_current_folder()
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        why = f"no module named {error.name!r}"
        if not _is_parent(str(error.name), of=module_name):
            why = f"{why} ({_location(error)})"
        raise ConfigError(f"cannot import {module_name}: {why}") from error
    except (Exception, SystemExit) as error:  # a module may raise anything as it is imported
        why = f"{_describe_error(error)} ({_location(error)})"
        raise ConfigError(f"cannot import {module_name}: {why}") from error


def _is_parent(name: str, *, of: str) -> bool:
    return f"{of}.".startswith(f"{name}.")


def _describe_error(error: BaseException) -> str:
    if isinstance(error, AsyncJobError):
        return _one_line(error)
    if isinstance(error, SystemExit):
        return f"it calls sys.exit({error.code!r})"
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    return f"{type(error).__name__}: {_one_line(error)}"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _location(error: BaseException) -> str:
    """Return the line of a module's own code that led to the error: what its author looks for."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    modules = [frame for frame in frames if frame.name == "<module>"]
    last = (modules or frames)[-1]
    return f"{last.filename}:{last.lineno}"


def _get_attribute(module: ModuleType, attribute: str) -> object:
    if not hasattr(module, attribute):
        raise ConfigError(f"module {module.__name__} has no {attribute!r}")
    return getattr(module, attribute)
