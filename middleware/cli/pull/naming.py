"""What can be pulled, and where it is: names of a short list, files of a hub, URLs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

HUB = "https://huggingface.co"
_REPO = r"(?P<owner>\w[\w.-]{0,95})/(?P<repo>\w[\w.-]{0,95})"
_FILE = re.compile(rf"{_REPO}:(?P<file>[^:?#\\]{{1,300}})", re.ASCII)
_WHOLE_REPO = re.compile(_REPO, re.ASCII)
# What people copy: the address of the file itself, or of the page that shows it.
_PAGE = re.compile(rf"/{_REPO}/(?:resolve|blob)/main/(?P<file>.+)", re.ASCII)
_SPLIT = re.compile(r"-\d{5}-of-\d{5}\.gguf$")


class Unknown(Exception):
    """What was asked for names no file."""


class Known(NamedTuple):
    """A small model that calls tools."""

    name: str
    repo: str
    file: str
    size: str
    licence: str
    about: str


KNOWN: Sequence[Known] = (
    Known(
        "qwen3-4b", "unsloth/Qwen3-4B-Instruct-2507-GGUF", "Qwen3-4B-Instruct-2507-Q4_K_M.gguf",
        "2.5 GB", "Apache 2.0", "the best of these with tools; does not think first",
    ),
    Known(
        "qwen3-1.7b", "Qwen/Qwen3-1.7B-GGUF", "Qwen3-1.7B-Q8_0.gguf",
        "1.8 GB", "Apache 2.0", "thinks before it answers",
    ),
    Known(
        "qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B-Instruct-GGUF", "qwen2.5-1.5b-instruct-q4_k_m.gguf",
        "1.1 GB", "Apache 2.0", "the quickest",
    ),
    Known(
        "smollm3-3b", "ggml-org/SmolLM3-3B-GGUF", "SmolLM3-Q4_K_M.gguf",
        "1.9 GB", "Apache 2.0", "thinks before it answers",
    ),
    Known(
        "llama3.2-3b", "bartowski/Llama-3.2-3B-Instruct-GGUF", "Llama-3.2-3B-Instruct-Q4_K_M.gguf",
        "2.0 GB", "Llama 3.2 Community", "",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a file is, and where it goes below the folder of models."""

    url: str
    place: PurePosixPath
    page: str = ""
    """Where a hub tells people of it."""

    @property
    def name(self) -> str:
        return self.place.name


def hub() -> str:
    return (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def listed() -> str:
    width = max(len(one.name) for one in KNOWN)
    rows = [
        f"  {one.name:<{width}}  {one.size}  {one.licence}{one.about and ', ' + one.about}"
        for one in KNOWN
    ]
    return "\n".join([
        "usetool pull NAME, where NAME is",
        *rows,
        "  OWNER/REPO:FILE.gguf  any other of Hugging Face",
        "  https://…/FILE.gguf   any other",
    ])  # fmt: skip


def find(name: str) -> ModelSource:
    if known := next((one for one in KNOWN if one.name == name.lower()), None):
        name = f"{known.repo}:{known.file}"
    source = _of_url(name) if "://" in name else _of_hub(name)
    if not source.name.endswith(".gguf"):
        raise Unknown(f"{source.name or name}: is no GGUF file; its name would end in .gguf.")
    if _SPLIT.search(source.name):
        raise Unknown(f"{source.name}: is one of several parts. Choose a file that is whole.")
    return source


def _of_hub(name: str) -> ModelSource:
    found = _FILE.fullmatch(name)
    if found is None:
        if _WHOLE_REPO.fullmatch(name):
            raise Unknown(
                f"{name}: which of its files? Write {name}:FILE.gguf; they are listed at "
                f"{hub()}/{name}/tree/main."
            )
        raise Unknown(f"There is no model '{name}' in the list.\n{listed()}")
    owner, repo, file = found["owner"], found["repo"], found["file"]
    if any(part in ("", ".", "..") for part in file.split("/")):
        raise Unknown(f"{name}: '{file}' is no path of a file.")
    page = f"{hub()}/{owner}/{repo}"
    place = PurePosixPath(owner, repo, PurePosixPath(file).name)
    return ModelSource(f"{page}/resolve/main/{quote(file)}", place, page)


def _of_url(url: str) -> ModelSource:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https"):
        raise Unknown(f"{url}: is no http or https address of a file.")
    shown = _PAGE.fullmatch(unquote(parts.path))
    if shown and f"{parts.scheme}://{parts.netloc}" in (hub(), HUB):
        return _of_hub("{owner}/{repo}:{file}".format(**shown.groupdict()))
    file = re.sub(r"[^\w.+ -]", "_", unquote(parts.path).rpartition("/")[2])
    return ModelSource(url, PurePosixPath(re.sub(r"[^\w.-]", "_", host), file.lstrip(".")))
