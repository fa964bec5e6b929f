"""Categories of errors: what `retryOn` and `noRetryOn` look at."""

import socket
from collections.abc import Mapping
from enum import StrEnum

from pydantic import ValidationError

from asyncjob.app.child_errors import (
    ChildFailedError,
    ChildGoneError,
    SubmitConflictError,
    SubmitForbiddenError,
    SubmitRefusedError,
)
from asyncjob.app.libraries import LIBRARY_CATEGORIES


class Category(StrEnum):
    """The built-in categories; an app may add its own by `app.categorize(...)`."""

    TIMEOUT = "Timeout"
    NETWORK = "Network"
    RATE_LIMITED = "RateLimited"
    VALIDATION = "Validation"
    PERMISSION = "Permission"
    NOT_FOUND = "NotFound"
    DEPENDENCY = "Dependency"
    CRASH = "Crash"
    INTERNAL = "Internal"


BUILT_IN_CATEGORIES: Mapping[type[BaseException], str] = {
    TimeoutError: Category.TIMEOUT,
    socket.gaierror: Category.NETWORK,
    ConnectionError: Category.NETWORK,
    PermissionError: Category.PERMISSION,
    FileNotFoundError: Category.NOT_FOUND,
    LookupError: Category.NOT_FOUND,
    ValidationError: Category.VALIDATION,
    ValueError: Category.VALIDATION,
    SubmitForbiddenError: Category.PERMISSION,
    SubmitRefusedError: Category.VALIDATION,
    SubmitConflictError: Category.VALIDATION,
    ChildFailedError: Category.DEPENDENCY,
    ChildGoneError: Category.DEPENDENCY,
}


MAX_CATEGORY_LENGTH = 64


def is_valid_category(category: str) -> bool:
    """Return whether a category of the app's own can be stored."""
    return 0 < len(category) <= MAX_CATEGORY_LENGTH and category.isprintable()


def categorize(error: BaseException, app_categories: Mapping[type[BaseException], str]) -> str:
    """Return the category of an error: the app's own mapping first, the nearest base class wins."""
    for kind in type(error).__mro__:
        category = (
            app_categories.get(kind)
            or BUILT_IN_CATEGORIES.get(kind)
            or LIBRARY_CATEGORIES.get(_class_path(kind))
        )
        if category:
            return str(category)
    return Category.INTERNAL.value


def _class_path(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
