"""Compiles the kernels in place: `python -m linearcore.kernels.compiled.build`, and `hatch_build.py` for the wheel."""

import hashlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path

LIBRARY = Path(__file__).with_name("_kernels.so")
# Without -ffast-math, which would break the rounding that `common.h` relies on. `omp simd` vectorises sums.
FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-signed-zeros",
    "-fPIC",
    "-fvisibility=hidden",
    # Errors in newer compilers, only warnings in older ones.
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion",
)


def source_hash() -> int:
    """Returns a number that depends on all C files."""
    digest = hashlib.sha256()
    for path in sorted(LIBRARY.parent.glob("*.[ch]")):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")


def compile_kernels() -> str | None:
    """Compiles all C files of this folder to `LIBRARY`; returns why that failed, or None."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not compiler or shutil.which(compiler[0]) is None:
        return "there is no C compiler; install gcc or clang, or set CC"
    sources = sorted(str(path) for path in LIBRARY.parent.glob("*.c"))
    # Written under another name first, so that processes that have loaded the old library keep it.
    unfinished = LIBRARY.with_suffix(".unfinished")
    try:
        command = [
            *compiler,
            *FLAGS,
            f"-DLC_SOURCE_HASH={source_hash()}LL",
            "-shared",
            "-o",
            str(unfinished),
            *sources,
            "-lm",
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            return f"{compiler[0]} failed: {result.stderr.strip()[:500]}"
        unfinished.replace(LIBRARY)
    except OSError as error:
        return str(error)
    finally:
        unfinished.unlink(missing_ok=True)
    return None


if __name__ == "__main__":
    problem = compile_kernels()
    if problem is not None:
        raise SystemExit(problem)
    print(f"compiled {LIBRARY.name}")
