"""Adds the folder wrappers/ to a wheel as nsightlens/_wrappers, and the glossary; all else stands in pyproject.toml."""

from pathlib import Path
from shutil import copy, copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithWrappers(build_py):
    """The usual build, and beside the package what lies elsewhere. An editable install finds it in the checkout."""

    def run(self) -> None:
        """Build."""
        super().run()
        if not self.editable_mode:
            copytree("wrappers", Path(self.build_lib) / "nsightlens" / "_wrappers", dirs_exist_ok=True,
                     ignore=ignore_patterns("__pycache__", ".*"))
            copy("docs/glossary.md", Path(self.build_lib) / "nsightlens" / "_glossary.md")


setup(cmdclass={"build_py": BuildWithWrappers})
