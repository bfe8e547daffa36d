"""Says in one line what is missing when an optional package is not there."""

from importlib.util import find_spec

# What is imported and what is installed do not always have the same name.
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


class MissingExtraError(ImportError):
    """An optional package is needed and not installed."""


def require(*modules: str, extra: str) -> None:
    """Raises unless all `modules` can be imported; nothing is imported yet.

    Args:
        modules: names as in an import statement.
        extra: the extra of linearcore that brings them.

    Raises:
        MissingExtraError: with the command that installs them.
    """
    missing = [_DISTRIBUTIONS.get(module, module) for module in modules if find_spec(module) is None]
    if missing:
        raise MissingExtraError(f"{' and '.join(missing)} not installed; run pip install 'linearcore[{extra}]'")
