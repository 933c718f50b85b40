"""What a mask may stand for: dates, times, identifiers, numbers, paths, ports, or a pattern."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

SECRET = "secret"
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_WEEKDAY = "(?:Mon|Tue(?:s)?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
_YEAR, _M, _D = r"(?:19|20)\d\d", "(?:1[0-2]|0?[1-9])", r"(?:3[01]|[12]\d|0?[1-9])"
_DAY = (
    f"(?:{_WEEKDAY},? )?(?:{_YEAR}-{_M}-{_D}|{_YEAR}/{_M}/{_D}|{_D}\\.{_M}\\.{_YEAR}"
    f"|{_M}/{_D}/{_YEAR}|{_D}/{_M}/{_YEAR}|{_YEAR}年{_M}月{_D}日"
    f"|{_D}(?:st|nd|rd|th|\\.)? {_MONTH}\\.?,? {_YEAR}"
    f"|{_MONTH}\\.? {_D}(?:st|nd|rd|th)?,? {_YEAR})"
    f"(?: \\(?{_WEEKDAY}\\)?|[ （(]?(?:星期|周)[一二三四五六日天][)）]?)?"
)
_CLOCK = (
    r"(?:2[0-3]|[01]?\d):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?: ?[AaPp]\.?[Mm]\b\.?)?"
    r"(?: ?(?:Z|UTC|GMT)\b| ?[+-]\d\d:?\d\d(?!\d))?"
)
_BEFORE, _AFTER = r"(?<![0-9A-Za-z])(?<!\d[-./])", r"(?![0-9A-Za-z]|[-./]\d)"
_KINDS: Mapping[str, str] = {
    "uuid": r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])",
    "datetime": f"{_BEFORE}(?:{_DAY}(?:T|,? (?:at )?){_CLOCK}"
    f"|{_WEEKDAY} {_MONTH} {{1,2}}{_D} {_CLOCK}(?: [A-Z]{{2,5}})? {_YEAR}){_AFTER}",
    "date": rf"{_BEFORE}{_DAY}(?:{_AFTER}|(?=T\d\d:))",
    "time": rf"(?:(?<![0-9A-Za-z:.])|(?<=\dT)){_CLOCK}(?![0-9A-Za-z]|:\d)",
    "ulid": r"(?<![0-9A-Za-z])[0-7](?:[0-9A-HJKMNP-TV-Z]{25}|[0-9a-hjkmnp-tv-z]{25})"
    r"(?![0-9A-Za-z])",
    # Its beginning is plain: 和/或 is "and/or".
    "path": r"(?<![0-9A-Za-z_:/\\.~-])(?:~|[A-Za-z]:|\.{1,2})?(?=[/\\]{1,2}[0-9A-Za-z_.-])"
    r"""(?:(?:/|\\{1,2})(?:[^\s/\\"'`<>|:;,()\[\]{}*?.。，；：]|\.(?=[\w./\\-]))++)++""",
    "hex": r"(?<![0-9A-Za-z])(?:0x)?(?:[0-9a-f]{8,}+|[0-9A-F]{8,}+)(?![0-9A-Za-z])",
    "port": r"(?<=[0-9A-Za-z\]]:)\d{4,5}(?![0-9A-Za-z:]|\.\d)",
    "number": r"(?<![0-9A-Za-z_.])-?\d++(?:[.,]\d++){0,8}+(?:[eE][+-]?\d++)?(?![0-9A-Za-z_])",
    SECRET: r"\[secret(?::[^\]\s]{1,200}+)?\]",
}
WORDS = tuple(name for name in _KINDS if name != SECRET)
# Of two that begin in one place the longer counts, then the first of these.
_TELLING = ("uuid", "datetime", "date", "time", "ulid", "path", "hex", "port")


@cache
def _kind(what: str) -> re.Pattern[str]:
    return re.compile(_KINDS[what])


def pattern_of(what: str) -> re.Pattern[str]:
    """The pattern of a word; anything else is a pattern itself."""
    return _kind(what) if what in _KINDS else re.compile(what)


@cache
def tokens() -> re.Pattern[str]:
    """Splits a line into values of a kind that a mask knows, words, and single marks."""
    known = "|".join(f"(?P<{name}>{_KINDS[name]})" for name in _TELLING)
    return re.compile(rf"{known}|[A-Za-z0-9_]++|\s++|.")
