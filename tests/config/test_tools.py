"""What `[tools]` may say, and which mistakes are named."""

from __future__ import annotations

import pytest

from middleware import config
from middleware.config import ConfigError

_WHOLE = """
[upstreams.u]
kind = "scripted"
[models.m]
upstream = "u"
{model}
[tools.a]
{table}
"""
_PYTHON = 'kind = "python"\nmodule = "x.py"\n'
_WEB = (
    'kind = "http"\nurl = "{}"\nparameters = {{ type = "object", properties = {{ id = {{}} }} }}\n'
)


def parse(table: str, model: str = "") -> config.Config:
    return config.parse(_WHOLE.format(model=model, table=table), environment={})


def test_a_table_is_read_with_its_defaults() -> None:
    tool = parse(_PYTHON, 'server_tools = ["a.*"]').tools["a"]
    assert (tool.functions, tool.timeout, tool.calls_per_request) == (("*",), 30.0, 20)
    model = parse(_PYTHON, 'steps = "reasoning"\nmax_rounds = 3').models["m"]
    assert (model.steps, model.max_rounds, model.server_tools) == ("reasoning", 3, ())


@pytest.mark.parametrize(
    ("table", "model", "words"),
    [
        ("", "", ("tools.a", "kind", "missing")),
        ('kind = "perl"', "", ("tools.a.kind", "python")),
        (f"{_PYTHON}url = 'x'", "", ("tools.a.url",)),
        (f"{_PYTHON}description = 'x'", "", ("tools.a.description", "*")),
        (f"{_PYTHON}functions = ['f', 'g']\nname = 'x'", "", ("tools.a.name", "one function")),
        (f"{_PYTHON}functions = ['f']\noverrides = {{ g = {{}} }}", "", ("overrides", "'g'")),
        (f"{_PYTHON}clients = ['who']", "", ("tools.a.clients", "who")),
        (_WEB.format("https://h/{other}"), "", ("tools.a.url", "other")),
        (_WEB.format("https://{id}.example/"), "", ("tools.a.url", "host")),
        (_WEB.format("ftp://h/"), "", ("tools.a.url", "http")),
        ('kind = "mcp"', "", ("command", "url")),
        ('kind = "mcp"\ncommand = ["x"]\nurl = "http://x"', "", ("command", "url")),
        (f"{_PYTHON}functions = ['f']", 'server_tools = ["b"]', ("models.m.server_tools", "'b'")),
        (f"{_PYTHON}functions = ['f']", 'server_tools = ["a.g"]', ("server_tools", "a.g")),
        (f"{_PYTHON}functions = ['f']", 'takeover = ["g"]', ("models.m.takeover", "'g'")),
        (_PYTHON, "max_rounds = 0", ("max_rounds",)),
        (_PYTHON, 'steps = "loud"', ("steps", "loud")),
    ],
)
def test_mistakes_are_named(table: str, model: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(table, model)
    assert all(word in str(raised.value) for word in words), str(raised.value)


@pytest.mark.parametrize(
    ("table", "model"),
    [
        ('kind = "mcp"\ncommand = ["x"]', 'server_tools = ["a.anything"]\ntakeover = ["some"]'),
        (f"{_PYTHON}functions = ['Class']", 'server_tools = ["a.method"]'),
        (_WEB.format("{id}"), 'server_tools = ["a"]'),
        ('kind = "tavily"', 'takeover = ["tavily_search"]'),
    ],
)
def test_what_is_not_known_yet_is_no_mistake(table: str, model: str) -> None:
    assert parse(table, model).tools["a"].enabled
