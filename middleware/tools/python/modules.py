"""Modules of tools: files and folders beside the config, and what can be imported."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from middleware.tools.foreign import Raised
from middleware.tools.tool_marks import is_marked

_EVERYTHING = "*"


class ModuleMember(NamedTuple):
    """Something a module has, by the name it has there."""

    name: str
    value: object


class ToolModules(NamedTuple):
    """One module, or all of a folder by their paths (`sub/file`)."""

    by_path: Mapping[str, ModuleType]

    def chosen(self, entry: str) -> Sequence[ModuleMember]:
        """What an entry of `functions` means; raises `LookupError` where it is not there."""
        where, _, name = entry.rpartition(":")
        if where and where not in self.by_path:
            there = ", ".join(self.by_path) or "none"
            raise LookupError(f"there is no file '{where}' ({there})")
        modules = [self.by_path[where]] if where else [*self.by_path.values()]
        return _tools(modules) if name == _EVERYTHING else [_member(modules, name)]


def _tools(modules: Sequence[ModuleType]) -> list[ModuleMember]:
    """Those that are marked, if any are, else all functions."""
    public = [one for module in modules for one in _public(module)]
    marked = [one for one in public if is_marked(one.value)]
    return marked or [one for one in public if inspect.isfunction(one.value)]


def _member(modules: Sequence[ModuleType], name: str) -> ModuleMember:
    for module in modules:
        if hasattr(module, name):
            return ModuleMember(name, getattr(module, name))
    raise LookupError(f"there is no '{name}' in {', '.join(map(_file, modules))}")


def _public(module: ModuleType) -> Iterator[ModuleMember]:
    """What a module itself defines, in lexical order."""
    for name, value in sorted(vars(module).items()):
        own = getattr(value, "__module__", None) == module.__name__
        if own and not name.startswith("_") and callable(value):
            yield ModuleMember(name, value)


def _file(module: ModuleType) -> str:
    return Path(getattr(module, "__file__", None) or module.__name__).name


def load_modules(said: str, folder: Path, own_name: str) -> ToolModules:
    """Import them anew under a name of their own; raises whatever they raise."""
    path = folder / Path(said).expanduser()
    if path.is_dir():
        return _load_folder(path, own_name)
    if path.is_file():
        _forget(own_name)
        return ToolModules({path.stem: _load(path, own_name)})
    if said.endswith(".py") or "/" in said:
        raise FileNotFoundError(f"there is no file or folder '{Path(said).name}' beside the config")
    return ToolModules({said: importlib.import_module(said)})


def _load_folder(path: Path, own_name: str) -> ToolModules:
    _forget(own_name)
    if (path / "__init__.py").is_file():
        _load(path / "__init__.py", own_name)
    else:
        package = ModuleType(own_name)
        package.__path__ = [str(path)]
        sys.modules[own_name] = package
    found = {}
    for file in sorted(path.rglob("*.py")):
        parts = file.relative_to(path).with_suffix("").parts
        if parts[-1] != "__init__":
            found["/".join(parts)] = importlib.import_module(".".join((own_name, *parts)))
    return ToolModules(found)


def _load(path: Path, name: str) -> ModuleType:
    folder = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folder)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # types are looked up there
    spec.loader.exec_module(module)
    return module


def _forget(own_name: str) -> None:
    for name in [*sys.modules]:
        if name == own_name or name.startswith(f"{own_name}."):
            del sys.modules[name]


def reason_of(raised: Raised, module: Path) -> str:
    """Why something cannot be used: the file without its path, the line, the words."""
    error = raised.error
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{Path(error.filename).name}, line {error.lineno}"
        return f"{where}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(module)]
    if not own:
        return str(raised)
    return f"{Path(own[-1].filename).name}, line {own[-1].lineno}: {raised}"
