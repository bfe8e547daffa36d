"""One-line errors for optional packages that are not installed."""

from importlib.util import find_spec

# Import name → distribution name, where they differ.
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


class MissingExtraError(ImportError):
    """A required optional package is not installed."""


def require(*modules: str, extra: str | None) -> None:
    """Raises if one of `modules` is not installed. Imports nothing.

    Args:
        modules: import names.
        extra: the extra of linearcore that installs them; None if no extra does.

    Raises:
        MissingExtraError: if a module is missing; the message has the pip command.
    """
    missing = [_DISTRIBUTIONS.get(module, module) for module in modules if find_spec(module) is None]
    if missing:
        packages = " ".join(missing) if extra is None else f"'linearcore[{extra}]'"
        raise MissingExtraError(f"{' and '.join(missing)} not installed; run pip install {packages}")
