"""Who may call LiteLLM's proxy → clients of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping

from middleware.cli.importers import toml
from middleware.cli.importers.collecting import Table, Taking, table_of

_ADMIN = "admin"
_MADE = "default_key_generate_params"
_LIMITS: Mapping[str, str] = {
    "rpm_limit": "requests_per_minute",
    "tpm_limit": "tokens_per_minute",
    "max_parallel_requests": "concurrent",
}
_PERIODS: Mapping[str, str] = {
    **dict.fromkeys(("1h", "60m", "3600s"), "hour"),
    **dict.fromkeys(("1d", "24h", "86400s"), "day"),
    **dict.fromkeys(("7d", "1w"), "week"),
    **dict.fromkeys(("30d", "1mo"), "month"),
}
_LEAST = 1e-9
_NO_CLIENT = "there is no master_key, so nobody here has a budget or limits"


def clients_of(general: Taking, library: Taking) -> list[str]:
    """Sections of the new file; what is limited for all is the limit of the only client."""
    key = general.secret("master_key", "USETOOL_KEY")
    client: Table = {"key": key, "admin": True, "budget": _budget(library)}
    if (at_once := _whole(general, "max_parallel_requests")) is not None:
        client["concurrent"] = at_once
    notes = ["Everybody who had the master key. It sees all usage; give others one of their own."]
    begun = _begun(library)
    if key:
        return [toml.table(("clients", _ADMIN), client, notes), *begun]
    for taking, name, said in (
        (library, "max_budget", client["budget"]),
        (general, "max_parallel_requests", at_once),
    ):
        if said is not None:
            taking.lose(name, _NO_CLIENT)
    return begun


def _begun(library: Taking) -> list[str]:
    """What keys got that LiteLLM made: those stand in its database."""
    made = table_of(library.left.get(_MADE))
    if not made:
        return []
    library.lose(
        _MADE,
        "keys that LiteLLM made are in its database: give each client a section of its own, which "
        "is begun in the file as a comment",
    )
    taking = Taking("", f"litellm_settings.{_MADE}.", made, library.around, library.lost)
    client: Table = {"key": "env:NAME_KEY", "models": taking.take("models")}
    client |= {ours: _whole(taking, theirs) for theirs, ours in _LIMITS.items()}
    client["budget"] = _budget(taking)
    taking.lose_rest({})
    section = toml.table(("clients", "NAME"), client, ("For each key that LiteLLM made:",))
    return ["\n".join(f"# {line.removeprefix('# ')}" for line in section.splitlines())]


def _budget(taking: Taking) -> str | None:
    amount, duration = taking.number("max_budget", 0, 1e9), taking.text("budget_duration")
    if not amount or amount < _LEAST:
        return None
    period = _PERIODS.get(re.sub(r"\s", "", duration).lower(), "") if duration else "total"
    if not period:
        taking.lose("budget_duration", "is no hour, day, week or month; budgets have those")
        return None
    return f"{amount:.9f}".rstrip("0").rstrip(".") + f" USD/{period}"


def _whole(taking: Taking, key: str) -> int | None:
    number = taking.number(key, 1, 1e9)
    return None if number is None else int(number)
