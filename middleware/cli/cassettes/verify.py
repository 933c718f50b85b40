"""`usetool cassette verify`: whether this version still says and reads what was recorded."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from middleware.cli import command
from middleware.cli.cassettes.files import write
from middleware.cli.cassettes.options import add_folder, folder_of
from middleware.cli.command import FINE, LACKING, say

_ABOUT = """\
Encodes every ask again and reads every recorded answer again, offline and free: every cassette is a
test of this gateway. A change is named with its path: "encode drift" is what would be sent
otherwise, "decode drift" what would be answered otherwise. Format, files beside, secrets in clear
and age are checked too.

Exit code: 0, or 1 with drift or a problem.
"""


def add(commands: Any) -> None:
    verify = command.add(commands, "verify", "find what this version does otherwise", _ABOUT, run)
    verify.add_argument("names", metavar="NAME", nargs="+")
    verify.add_argument("--accept", action="store_true", help="write the new answers")
    verify.add_argument("--max-age", type=_days, metavar="DAYS", help="such as 90d")
    verify.add_argument("--format", choices=("text", "json"), default="text")
    add_folder(verify)


def _days(text: str) -> int:
    if not re.fullmatch(r"\d{1,5}d?", text):
        raise argparse.ArgumentTypeError("a number of days such as 90d")
    return int(text.removesuffix("d"))


class _Checked(NamedTuple):
    name: str
    drift: list[Any]
    problems: list[str]
    remarks: Sequence[str] = ()


def run(options: argparse.Namespace) -> int:
    checked = [_check(name, options) for name in options.names]
    bad = any(one.drift or one.problems for one in checked)
    code = LACKING if bad and not options.accept else FINE
    if options.format == "json":
        say(_as_json(checked, code))
        return code
    for one in checked:
        say(f"{one.name}: {len(one.drift) + len(one.problems) or 'nothing'} to say")
        for line in (*one.drift, *one.problems, *one.remarks):
            say(f"  {line}")
    return code


def _check(name: str, options: argparse.Namespace) -> _Checked:
    from middleware.cassettes.errors import CassetteRefused, UnreadableCassette
    from middleware.cassettes.file import read_cassette
    from middleware.cassettes.names import file_of
    from middleware.cassettes.verify import problems_of, remarks_of, too_old, verified

    try:
        path = file_of(folder_of(options), name)
        cassette = read_cassette(path)
        remarks = remarks_of(cassette, path)
        found = asyncio.run(verified(cassette, str(path)))
    except FileNotFoundError:
        return _Checked(name, [], ["there is no such file"])
    except (UnreadableCassette, CassetteRefused) as error:
        return _Checked(name, [], [str(error)])
    if options.accept and found.cassette != cassette:
        write(path, found.cassette)
    problems = problems_of(cassette, Path(path))
    if options.max_age is not None:
        problems.append(too_old(cassette, options.max_age, date.today()))
    problems = [one for one in problems if one]
    return _Checked(name, list(found.drift), problems, remarks)


def _as_json(checked: list[_Checked], code: int) -> str:
    cassettes = [
        {
            "name": one.name,
            "drift": [{"turn": turn, **drift._asdict()} for turn, drift in one.drift],
            "problems": one.problems,
            "remarks": one.remarks,
        }
        for one in checked
    ]
    return json.dumps({"cassettes": cassettes, "exit": code}, ensure_ascii=False, indent=1)
