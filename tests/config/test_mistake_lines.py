"""Mistakes of config.toml are named with their line, and fields with the place that is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from middleware import config
from middleware.config import ConfigError
from tests.config.reading import KEY, ONE, mistakes
from tests.linear.measuring import is_within

LONG = '''
[server]   # a comment
cors_origins = [
  "a",     # with = and [models.x] in it
  """
[models.x]
temperature = 1
""",
]
port = 0
[models.one]
upstream = "up"
"temperature" = 0.5

options.reask = 7
[models."a.b"]
upstream = "up"
defaults = { seed = 1, temprature = 1 }
[upstreams]
up = { kind = "ollama", prot = 1 }
gone.kind = "compatible"
'''


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_mistake_names_the_line_its_statement_begins_on(end: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.parse(LONG.replace("\n", end), environment={}, server={"max_body": 0})
    found = {one.key: one.line for one in caught.value.mistakes}
    assert found == {
        "server.port": 10,
        "models.one.temperature": 13,
        "models.one.options.reask": 15,
        'models."a.b".defaults.temprature': 18,
        "upstreams.up.prot": 20,
        "upstreams.gone.base_url": 21,
        "server.max_body": 0,  # the command line says it
    }
    assert [*found.values()] == [10, 13, 15, 18, 20, 21, 0]


def test_a_line_is_looked_for_only_so_long() -> None:
    text = "[server]\nkeys = [\n" + '"k",\n' * 20_000 + "]\nprot = 1\n" + ONE
    assert "server.prot" in mistakes(text)
    assert is_within(10, lambda: mistakes(text))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("temperature = 0.2", "defaults = { temperature = 0.2 }, or override"),
        ('stop = ["a", "b"]', 'defaults = { stop = ["a", "b"] }'),
        ('reasoning_effort = "low"', 'defaults = { reasoning_effort = "low" }'),
        ("top_k = 3", "defaults = { top_k = 3 }"),
        ("response_format = { type = 1 }", "defaults = { response_format = { … } }"),
    ],
)
def test_a_field_of_requests_beside_the_keys_of_a_model_gets_its_place(
    line: str, words: str
) -> None:
    ((_, text),) = mistakes(f"{ONE.replace('[upstreams', f'{line}{chr(10)}[upstreams')}").items()
    assert words in text
    assert "There are:" not in text


@pytest.mark.parametrize("place", ["defaults", "override"])
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("temprature", "temperature"),
        ("maxtokens", "max_tokens"),
        ("max-tokens", "max_tokens"),
        ("Temperature", "temperature"),
        ("reasoning_efort", "reasoning_effort"),
        ("presence_penality", "presence_penalty"),
        ("top_k", ""),
        ("min_tokens", ""),
        ("chat_template_kwargs", ""),
        ("my_own_field", ""),
    ],
)
def test_a_misspelt_field_is_a_mistake_and_a_foreign_one_is_not(
    place: str, name: str, meant: str
) -> None:
    text = f"[models.two]\nupstream = 'up'\n{place} = {{ {name} = 1 }}\n{ONE}"
    if not meant:
        assert getattr(config.parse(text, environment={}).models["two"], place) == {name: 1}
        return
    assert f"Did you mean '{meant}'?" in mistakes(text)[f"models.two.{place}.{name}"]


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("openai", ["compatible", "https://api.openai.com/v1", "env:OPENAI_API_KEY"]),
        ("OpenAI", ["compatible", "https://api.openai.com/v1"]),
        ("anthropic", ["claude", "env:ANTHROPIC_API_KEY"]),
        ("openrouter", ["compatible", "https://openrouter.ai/api/v1", "env:OPENROUTER_API_KEY"]),
        ("vllm", ["compatible", "http://127.0.0.1:8000/v1"]),
        ("lm-studio", ["compatible", "http://127.0.0.1:1234/v1"]),
        ("llama.cpp", ["compatible", "http://127.0.0.1:8080/v1"]),
        ("llama_cpp", ["compatible", "http://127.0.0.1:8080/v1"]),
        ("Gemini", ["compatible", "https://generativelanguage.googleapis.com/v1beta/openai"]),
        ("qwen", ["compatible", "https://dashscope.aliyuncs.com/compatible-mode/v1"]),
        ("kimi", ["compatible", "https://api.moonshot.ai/v1"]),
        ("together", ["compatible", "https://api.together.ai/v1"]),
        ("bedrock", ["longtail"]),
        ("litellm", ["longtail"]),
    ],
)
def test_a_service_that_is_no_kind_gets_the_stanza_that_is_meant(
    kind: str, lines: list[str]
) -> None:
    text = f'[upstreams.mine]\nkind = "{kind}"\n[models.m]\nupstream = "mine"\n'
    told = mistakes(text)["upstreams.mine.kind"]
    for line in lines:
        assert f'"{line}"' in told
    written = told.partition("write:")[2].replace("\n  ", "\n")
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    found = config.parse(f'{written}\n[models.m]\nupstream = "mine"\n', environment=keys)
    assert found.upstreams["mine"].kind == lines[0]


def test_a_section_that_holds_no_tables_is_a_mistake() -> None:
    found = mistakes("upstreams = 3\nmodels = []\n")
    assert found["upstreams"] == "must hold tables: write [upstreams.NAME]."
    assert found["models"] == "must hold tables: write [models.NAME]."


def test_a_file_without_models_is_a_mistake() -> None:
    assert "There are none" in mistakes("[server]\nport = 1")["models"]


def test_a_misspelt_secret_is_not_shown() -> None:
    text = f'[upstreams.up]\nkind = "claude"\napi_kye = "{KEY}"\nheaders = "{KEY}"\n{ONE}'
    text = text.replace(ONE, '[models.one]\nupstream = "up"\n')
    found = mistakes(text)
    assert list(found) == ["upstreams.up.api_kye", "upstreams.up.headers"]
    assert KEY not in str(found)


def test_a_syntax_error_has_its_line_and_column() -> None:
    assert "line 2, column 8" in mistakes("[server]\nport = \n")[""]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[upstreams.up]\nkind = compatible\n", 'in quotes: kind = "compatible".'),
        ("[models.up/*]\n", 'in quotes: [models."relay/*"].'),
        ("[server]\n[server]\n", "Each [section] stands once"),
        ("[server]\nport = 1\nport = 2\n", "Each key stands once"),
    ],
)
def test_a_syntax_error_says_what_to_write(text: str, hint: str) -> None:
    assert hint in mistakes(text)[""]


@pytest.mark.parametrize(
    ("content", "words"), [(b"\xff\xfe", "not UTF-8"), (None, "No such file or directory")]
)
def test_an_unreadable_file_is_a_mistake(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "config.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        config.load(path)
