"""Compiles the CPU kernels when the package is built. Without a C compiler the package has only its PyTorch kernels."""

import importlib.util
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "src/linearcore/kernels/compiled"


class CompiledKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the shared library to the wheel and gives the wheel the tag of this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # Loaded from its file, because `import linearcore` needs torch.
        spec = importlib.util.spec_from_file_location("build", Path(self.root) / FOLDER / "build.py")
        assert spec is not None and spec.loader is not None
        build = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(build)
        build.LIBRARY.unlink(missing_ok=True)
        problem = build.compile_kernels()
        if problem is not None:
            self.app.display_warning(
                f"linearcore is built without its compiled CPU kernels, which makes it slower: {problem}"
            )
            return
        build_data["artifacts"].append(f"{FOLDER}/{build.LIBRARY.name}")
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
