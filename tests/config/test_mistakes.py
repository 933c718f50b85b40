"""How every mistake in config.toml is named, with its key and the way out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from middleware import config
from middleware.config import ConfigError
from tests.config.reading import ONE, mistakes
from tests.support.paths import ROOT

A = "[upstreams.a]\nkind = 'claude'\n"
D = "[upstreams.a]\nkind = 'ollama'\n"
M = "[models.a]\nupstream = 'up'\n"
C = A + "[models.a]\nupstream = 'a'\n"
MISTAKES = [
    ("[sever]\nport = 1", "sever", "Did you mean 'server'?"),
    ("[server]\nprot = 1", "server.prot", "Did you mean 'port'?"),
    ("[server]\nport = '80'", "server.port", "is '80', but must be a whole number from 1 to 65535"),
    ("[server]\nport = true", "server.port", "is true, but must be"),
    ("[server]\nstrict = 1", "server.strict", "is 1, but must be true or false"),
    ("[server]\nlog_level = 'loud'", "server.log_level", '"debug", "info", "warning", "error"'),
    ("[server]\ncors_origins = '*'", "server.cors_origins", "write it in brackets"),
    ("server = 1", "server", "must be a table: write [server]"),
    ("[server]\nkeys = ['']", "server.keys", "it is empty"),
    ("[server]\nkeys = ['env:GONE']", "server.keys", "variable GONE is not set"),
    ("[server]\nhost = '0.0.0.0'", "server.keys", "can be reached from other machines"),
    ("[server]\nhost = '::'\nkeys = []", "server.keys", "can be reached from other machines"),
    ("[defaults.timeouts]\nidel = 1", "defaults.timeouts.idel", "Did you mean 'idle'?"),
    ("[defaults]\ntimeouts = 3", "defaults.timeouts", "is 3, but must be a table"),
    ("[upstreams.a]", "upstreams.a.kind", "is missing: write one of claude, deepseek"),
    ("[upstreams.a]\nkind = 'cluade'", "upstreams.a.kind", "Did you mean 'claude'?"),
    ("[upstreams.a]\nkind = 'compatible'", "upstreams.a.base_url", "is missing"),
    ("[upstreams]\na = 3", "upstreams.a", "must be a table: write [upstreams.a]"),
    (A + "timeouts = {idle = 0}", "upstreams.a.timeouts.idle", "above 0"),
    (A + "api_key = ''", "upstreams.a.api_key", "it is empty"),
    (A + "api_key = '${THE_KEY}'", "upstreams.a.api_key", "env:THE_KEY"),
    (A + "api_key = 'env:'", "upstreams.a.api_key", "must follow"),
    (A + "api_key = \"a\\nb\"", "upstreams.a.api_key", "HTTP header"),
    (A + "max_tokens = 3", "upstreams.a.max_tokens", "[models.NAME]"),
    (D + "num_ctx = 3", "upstreams.a.num_ctx", "NAME] or options = { num_ctx = … } here."),
    (A + "proxy = 'p:80'", "upstreams.a.proxy", 'begin with "http://"'),
    ("[models.a]", "models.a.upstream", "is missing. There are: up."),
    ("[models.a]\nupstream = 'pu'", "models.a.upstream", "is 'pu', but there are: up."),
    ("[models.a]\nupstraem = 'up'", "models.a.upstraem", "Did you mean 'upstream'?"),
    (M + "tools = 'yes'", "models.a.tools", '"native", "emulated"'),
    (M + "api_key = 'x'", "models.a.api_key", "belongs in [upstreams.NAME]"),
    ("[models.gpt-4.1]\nupstream = 'up'", "models.gpt-4.1", '[models."gpt-4.1"]'),
    ("[models.'a/b']\nupstrem = 'up'", 'models."a/b".upstrem', "Did you mean 'upstream'?"),
    ("[models.'*-*']\nupstream = 'up'", 'models."*-*"', "more than one *"),
    (M + "name = '*'", "models.a.name", "is '*', but a * is only carried"),
    (M + "abilities = {vision = 'no'}", "models.a.abilities.vision", "must be true or false"),
    (C + "thinking = true", "models.a.thinking", 'say how: "manual"'),
    (M + "options = {num_ctx = 0}", "models.a.options.num_ctx", "1 or more"),
    (M + "defaults = {model = 'x'}", "models.a.defaults.model", "own"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "key", "words"), MISTAKES, ids=[row[1] for row in MISTAKES])
def test_a_mistake_names_its_key_and_the_way_out(text: str, key: str, words: str) -> None:
    found = mistakes(f"{text}\n{ONE}")
    assert list(found) == [key]
    assert words in found[key]


ADDRESSES = [
    ("compatible", "https://a.test/v1/chat/completions", 'write "https://a.test/v1"'),
    ("deepseek", "https://a.test/chat/completions/", 'write "https://a.test"'),
    ("claude", "https://a.test/v1/messages", 'write "https://a.test"'),
    ("claude", "https://a.test/v1", 'write "https://a.test"'),
    ("ollama", "http://a.test:11434/api", 'write "http://a.test:11434"'),
    ("ollama", "localhost:11434", 'write "http://localhost:11434"'),
    ("compatible", "a.test/v1", 'write "https://a.test/v1"'),
    ("compatible", "ftp://a.test/v1", "must be an http:// or https:// address"),
    ("compatible", "http://", "must be an http:// or https:// address"),
    ("compatible", "http://a.test:port/v1", "cannot be read"),
    ("compatible", "https://a.test/v1?key=sk-1", 'leave out what follows the path'),
    ("compatible", "https://me:word@a.test/v1", "use api_key or headers"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "address", "words"), ADDRESSES)
def test_a_wrong_address_comes_with_the_right_one(kind: str, address: str, words: str) -> None:
    text = f'[models.a]\nupstream = "up"\n[upstreams.up]\nkind = "{kind}"\nbase_url = "{address}"'
    found = mistakes(text)
    assert list(found) == ["upstreams.up.base_url"]
    assert words in found["upstreams.up.base_url"]
    assert "sk-1" not in str(found)
    assert "word@" not in str(found)


def test_all_mistakes_are_told_at_once_with_the_file() -> None:
    with pytest.raises(ConfigError) as caught:
        config.parse("[server]\nprot = 1\nport = 0\n[models.a]\n", source="my.toml", environment={})
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["my.toml:2", "server.prot"],
        ["my.toml:3", "server.port"],
        ["my.toml:4", "models.a.upstream"],
    ]


TWO = f"{ONE}[models.two]\npipeline = 'reason-then-answer'\n"


def test_a_pipeline_searches_tavily_without_a_word_about_it() -> None:
    text = f"{TWO}reasoner = 'one'\nanswerer = 'one'\nsearch = 'tavily'\n"
    found = config.parse(text, environment={"TAVILY_API_KEY": "tvly-x"})
    assert found.upstreams["tavily"].base_url == "https://api.tavily.com"
    assert found.upstreams["tavily"].missing() == ()
    own = "[upstreams.tavily]\nkind = 'tavily'\nbase_url = 'http://127.0.0.1:9'\n"
    found = config.parse(text + own, environment={})
    assert found.upstreams["tavily"].base_url == "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("answerer = 'one'", "models.two.reasoner", "is missing"),
        ("reasoner = 'on'\nanswerer = 'one'", "models.two.reasoner", "no such model"),
        ("reasoner = 'one'\nanswerer = 'two'", "models.two.answerer", "a pipeline itself"),
        (
            "reasoner = 'open/'\nanswerer = 'one'\n[models.'open/*']\nupstream = 'up'\n",
            "models.two.reasoner",
            "no such model",
        ),
        (
            "reasoner = 'one'\nanswerer = 'one'\nsearch = 'up'",
            "models.two.search",
            "of kind tavily",
        ),
        (
            "reasoner = 'one'\nanswerer = 'one'\nupstream = 'up'",
            "models.two.upstream",
            "is not for",
        ),
        ("reasoner = 'one'\nanswerer = 'one'\ntemplate = 'x'", "models.two.template", "{thought}"),
        ("reasoner = 'one'\nanswerer = 'one'\nrethink = 'x'", "models.two.rethink", "on-results"),
        ("reasoning = 'loud'", "models.two.reasoning", "think-tags"),
    ],
)
def test_mistakes_of_pipelines(text: str, key: str, words: str) -> None:
    assert words in mistakes(TWO + text)[key]


def test_keys_of_pipelines_need_one() -> None:
    text = f"{ONE}[models.two]\nupstream = 'up'\nsearch_show = true\n"
    assert "add pipeline" in mistakes(text)["models.two.search_show"]


def test_importing_the_config_loads_no_web_package() -> None:
    heavy = {"aiohttp", "pydantic", "fastapi", "orjson", "importlib.metadata"}
    program = f"import sys, middleware.config; print(*{heavy} & {{*sys.modules}})"
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (loaded.returncode, loaded.stdout) == (0, "\n"), loaded.stderr


LOCAL = '[upstreams.l]\nkind = "local"\n[models.local]\nupstream = "l"\n'
UNREADABLE: dict[str, tuple[str, str]] = {
    "a user nobody knows": (f'{LOCAL}path = "~nobody-of-that-name/x"', "models.local.path"),
    "no text": (f"{LOCAL}path = 5", "models.local.path"),
    "no text, among options": (f"{LOCAL}options = {{ path = 5 }}", "models.local.options.path"),
    "no text, upstream": (
        LOCAL.replace('"local"\n', '"local"\noptions = { path = 5 }\n', 1),
        "upstreams.l.options.path",
    ),
    "a letter no name has": (f'{LOCAL}path = "a\\u0000b"', "models.local.path"),
    "memories of a user nobody knows": (
        f'{LOCAL}[recall]\npath = "~nobody-of-that-name/x"',
        "recall.path",
    ),
    "memories in a number": (f"{LOCAL}[recall]\npath = 5", "recall.path"),
    "many digits": (f"{LOCAL}threads = {'9' * 5000}", ""),
    "many hexadecimal digits": (f"{LOCAL}threads = 0x{'f' * 5000}", "models.local.threads"),
    "a large number in a free table": (
        f"{LOCAL}override = {{ seed = [1, {1 << 63}] }}",
        "models.local.override.seed",
    ),
    "many brackets": (f"{LOCAL}path = {'[' * 3000}{']' * 3000}", ""),
    "some brackets": (
        f"{LOCAL}defaults = {{ stop = {'[' * 60}{']' * 60} }}",
        "models.local.defaults",
    ),
    "many tables": (f"{LOCAL}[models.local.defaults.{'.'.join('a' * 40)}]\nb = 1", "models.local"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_whatever_cannot_be_read_is_a_mistake_with_its_key(kind: str) -> None:
    text, key = UNREADABLE[kind]
    (found,) = mistakes(text)
    assert found.startswith(key)
    assert bool(found) == bool(key)


def test_a_path_may_begin_at_home() -> None:
    read = config.parse(f'{LOCAL}[recall]\npath = "~/r.sqlite3"', environment={})
    assert read.recall.path == str(Path.home() / "r.sqlite3")


def test_a_config_says_of_which_file_it_is(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(LOCAL)
    assert config.load(path, environment={}).stamp == config.stamp(path)
    assert config.parse(LOCAL, environment={}).stamp is None
    assert config.stamp(tmp_path / "none") is None
