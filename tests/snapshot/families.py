"""The families of the snapshot. All names of a family begin with its own name and a slash."""

from collections.abc import Callable, Iterator, Mapping

from tests.snapshot.analysis import analysis
from tests.snapshot.baselines import baselines
from tests.snapshot.binary import binary
from tests.snapshot.chains import chains
from tests.snapshot.decoding import decoding
from tests.snapshot.estimators import estimators
from tests.snapshot.large import large
from tests.snapshot.multiclass import multiclass
from tests.snapshot.noise import noise
from tests.snapshot.optimizers import optimizers
from tests.snapshot.record import Array, Entry
from tests.snapshot.robust import robust
from tests.snapshot.sampled import sampled
from tests.snapshot.structures import structures
from tests.snapshot.surrogates import surrogates

FAMILIES: dict[str, Callable[[], Iterator[Entry]]] = {
    family.__name__: family
    for family in (
        surrogates,
        multiclass,
        binary,
        robust,
        baselines,
        sampled,
        chains,
        decoding,
        estimators,
        large,
        structures,
        analysis,
        noise,
        optimizers,
    )
}


def of_family(family: str, recorded: Mapping[str, Array]) -> dict[str, Array]:
    """The part of a record that belongs to a family."""
    return {name: array for name, array in recorded.items() if name.startswith(f"{family}/")}
