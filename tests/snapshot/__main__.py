"""The command: `python -m tests.snapshot`."""

import argparse
import sys
import time

from tests.snapshot.families import FAMILIES, of_family
from tests.snapshot.record import FILE, Array, collect, compare, read, write

#: Lines of output after which the rest is only counted.
MOST_LINES = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.snapshot", description="Compare the library with its snapshot.")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"compare only these: {', '.join(FAMILIES)}")
    parser.add_argument("--write", action="store_true", help="record what the library computes now, all families")
    parser.add_argument("--verbose", action="store_true", help="print all differences, and the time of every family")
    options = parser.parse_args()
    if unknown := set(options.families) - set(FAMILIES):
        parser.error(f"unknown family: {', '.join(sorted(unknown))}; choose from {', '.join(FAMILIES)}")
    if options.write:
        if options.families:
            parser.error("--write records all families; leave their names out")
        return _write(options.verbose)
    return _compare(options.families or list(FAMILIES), options.verbose)


def _write(verbose: bool) -> int:
    arrays: dict[str, Array] = {}
    for family, entries in FAMILIES.items():
        started = time.perf_counter()
        found = collect(entries())
        arrays |= found
        if verbose:
            print(f"{family}: {len(found)} arrays, {time.perf_counter() - started:.1f} s")
    write(arrays)
    print(f"wrote {len(arrays)} arrays, {FILE.stat().st_size / 1e6:.2f} MB, to {FILE.name}")
    return 0


def _compare(families: list[str], verbose: bool) -> int:
    recorded = read()
    problems: list[str] = []
    for family in families:
        started = time.perf_counter()
        found = list(compare(FAMILIES[family](), of_family(family, recorded)))
        problems += found
        if verbose:
            print(f"{family}: {len(found)} differences, {time.perf_counter() - started:.1f} s")
    shown = problems if verbose else problems[:MOST_LINES]
    print("\n".join(shown), end="\n" if shown else "")
    if len(shown) < len(problems):
        print(f"… and {len(problems) - len(shown)} more; --verbose prints them all")
    print(f"{len(problems)} differences" if problems else "no differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
