"""What time it is, anywhere."""

from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

Zone = Annotated[str, "A time zone such as Europe/Berlin"]


def now(zone: Zone = "UTC") -> str:
    """The date and time in a time zone."""
    return f"{datetime.now(_zone(zone)):%A, %Y-%m-%d %H:%M %Z}"


def convert(time: Annotated[datetime, "As 2026-05-01T10:00"], source: Zone, target: Zone) -> str:
    """What a date and time of one time zone is in another."""
    return f"{time.replace(tzinfo=_zone(source)).astimezone(_zone(target)):%A, %Y-%m-%d %H:%M %Z}"


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"there is no time zone '{name}', but Asia/Shanghai is one") from None
