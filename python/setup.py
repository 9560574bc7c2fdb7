"""Builds the module with the project's own CMake; pyproject.toml has the rest.

KVASIR_BUILD_DIR names a build folder to use (and what is built in it already); else one is made.
"""

import os
import pathlib
import re
import shutil
import subprocess

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
MODEL = ROOT / "models" / "tang-lesson.gguf"


def version():
    """Of the project: there is one place that names it."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(kvasir VERSION ([\d.]+)", text)[1]


class CMakeBuild(build_ext):
    def build_extension(self, ext):
        folder = os.environ.get("KVASIR_BUILD_DIR") or os.path.abspath(self.build_temp)
        if not pathlib.Path(folder, "CMakeCache.txt").exists():
            subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja",
                            "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG",
                            "-DKVASIR_TESTS=OFF", "-DKVASIR_PROGRAM=OFF"], check=True)
        subprocess.run(["cmake", "--build", folder, "--target", "kvasir_python"], check=True)
        target = pathlib.Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        built = next(pathlib.Path(folder, "python", "kvasir").glob("_kvasir*.so"))
        shutil.copy2(built, target)
        models = target.parent / "models"
        models.mkdir(exist_ok=True)
        shutil.copy2(MODEL, models / MODEL.name)


setup(version=version(), ext_modules=[Extension("kvasir._kvasir", sources=[])],
      cmdclass={"build_ext": CMakeBuild})
