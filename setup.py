"""Puts the config that is shipped into the package: what is installed starts without a file."""

from pathlib import Path
from shutil import copyfile

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithConfig(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # then the repository's own is read
            copyfile("config.toml", Path(self.build_lib, "middleware", "config", "default.toml"))


setup(cmdclass={"build_py": BuildWithConfig})
