"""Ask real or scripted upstreams the fixed list of cases, and keep what they say as cassettes.

    RECORD_OLLAMA_URL=http://127.0.0.1:11434 make record case=ollama/one_call
    python -m tests.record --url claude=https://api.anthropic.com claude

RECORD_<ADAPTER>_URL says where an upstream is, RECORD_<ADAPTER>_KEY what opens it; an adapter
without an address is left out.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tests.support.cases import CASES, FAILING
from tests.support.fold import Answer, run
from tests.support.recordings import REAL, REAL_CASES, Upstream, ask_twice, tape_recorder, upstreams


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.record", description=__doc__)
    parser.add_argument("wanted", nargs="*", metavar="ADAPTER[/CASE]", help="default: all")
    parser.add_argument("--url", action="append", default=[], metavar="ADAPTER=URL")
    given = parser.parse_args(arguments)
    urls = dict(pair.split("=", 1) for pair in given.url)
    wanted = [
        (upstream, case)
        for upstream in (*upstreams(), REAL)
        for case in (REAL_CASES if upstream is REAL else CASES)
        if not given.wanted or {upstream.place, f"{upstream.place}/{case}"} & set(given.wanted)
    ]
    if not wanted:
        print(f"there is no such case; there are: {', '.join(CASES)}", file=sys.stderr)
        return 2
    return sum(not _record(upstream, case, urls) for upstream, case in wanted) and 1


def _record(upstream: Upstream, case: str, urls: dict[str, str]) -> bool:
    variable = f"RECORD_{upstream.name.upper()}"
    url = urls.get(upstream.name) or os.environ.get(f"{variable}_URL")
    if not url:
        print(f"{upstream.place}/{case}: left out, {variable}_URL is not set")
        return True
    key = os.environ.get(f"{variable}_KEY", "k")
    path = upstream.path(case)
    path.unlink(missing_ok=True)
    with tape_recorder(upstream, "all", url).use_cassette(str(path)):
        played = run(ask_twice(upstream, upstream.link(url, key), case))
    good = [_is_as_wanted(answer, case) for answer in (played.plain, played.streamed)]
    if not all(good):
        path.unlink(missing_ok=True)
    print(f"{upstream.place}/{case}: {'kept' if all(good) else 'not kept'}")
    return all(good)


def _is_as_wanted(answer: Answer, case: str) -> bool:
    failed = answer.error is not None
    if failed != (case in FAILING):
        print(f"  {answer.error or 'it did not fail'}")
    return failed == (case in FAILING)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
