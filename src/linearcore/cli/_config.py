"""TOML files with the options of a command, for `--config`."""

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from linearcore._checks import complaint
from linearcore.cli._usage import UsageError

#: What a value must be in the file, by the type of the option.
_KINDS: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "an integer"),
    float: ((int, float), "a number"),
    str: ((str,), "a string"),
    Path: ((str,), "a string"),
}


def read_config(file: Path, options: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """Returns the values in a TOML file by parameter.

    Args:
        file: the TOML file; its keys are the names of options.
        options: parameter and type of each option, by the option's name without the dashes in front.

    Raises:
        UsageError: if the file cannot be read, a key is not an option, or a value has the wrong type.
    """
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {(error.strerror or str(error)).lower()}") from error
    except ValueError as error:  # Invalid TOML or UTF-8.
        raise UsageError(f"{file} must be a TOML file: {error}") from error
    found = {}
    for key, value in values.items():
        if key not in options:
            raise UsageError(f"{file}: {_unknown(key, options)}")
        parameter, annotation = options[key]
        found[parameter] = _checked(file, key, value, annotation)
    return found


def _unknown(key: str, options: Mapping[str, object]) -> str:
    nearest = get_close_matches(key.replace("_", "-").removeprefix("no-"), options, n=1, cutoff=0.0)
    return complaint(key, "be an option of the command", "an unknown key", f"the nearest option is {nearest[0]}")


def _checked(file: Path, key: str, value: Any, annotation: Any) -> Any:
    """Returns the value of a key; raises if it does not have the type of the option."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(member for member in get_args(annotation) if member is not type(None))
    if get_origin(annotation) is list:
        many = value if isinstance(value, list) else [value]
        return [_checked(file, key, one, get_args(annotation)[0]) for one in many]
    types, name = _KINDS[annotation]
    # bool is a subclass of int.
    if not isinstance(value, types) or (isinstance(value, bool) and annotation is not bool):
        raise UsageError(f"{file}: {complaint(key, f'be {name}', repr(value), f'correct the value of {key}')}")
    return value
