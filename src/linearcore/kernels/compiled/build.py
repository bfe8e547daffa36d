"""Compiles the kernels in place: `python -m linearcore.kernels.compiled.build`, and `hatch_build.py` for the wheel."""

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
)


def compile_kernels() -> str | None:
    """Compiles all C files of this folder to `LIBRARY`; returns why that failed, or None."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not compiler or shutil.which(compiler[0]) is None:
        return "there is no C compiler; install gcc or clang, or set CC"
    sources = sorted(str(path) for path in LIBRARY.parent.glob("*.c"))
    # Written under another name first, so that processes that have loaded the old library keep it.
    unfinished = LIBRARY.with_suffix(".unfinished")
    try:
        command = [*compiler, *FLAGS, "-shared", "-o", str(unfinished), *sources, "-lm"]
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
    raise SystemExit(compile_kernels())
