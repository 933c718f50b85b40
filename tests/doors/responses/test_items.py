"""Input items as messages: what belongs to one turn is one message."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.errors import BadRequest
from adapters.protocol import RESULT_OF, Json
from tests.doors.responses.written import call, codes, item, messages, output, read

USER = item("user", "hi")
ASKED = {"role": "user", "content": "hi"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "seen"}
PNG = "data:image/png;base64,AAAA"
IMAGE = {"type": "image_url", "image_url": {"url": PNG}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
SEEN = {"type": "input_image", "image_url": PNG, "detail": "auto"}
PDF = {"file_data": "d", "filename": "a.pdf"}
PATCH = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"}


def text(*said: str, kind: str = "output_text") -> list[Json]:
    return [{"type": kind, "text": one} for one in said]


READ: tuple[tuple[str, list[Json], list[Json]], ...] = (
    ("parts", [{"role": "user", "content": text("hi", kind="input_text")}], [ASKED]),
    ("typed", [{"type": "message", **USER}], [ASKED]),
    ("developer", [item("developer", "be kind"), USER], [item("developer", "be kind"), ASKED]),
    ("system parts", [{"role": "system", "content": text("a", "b", kind="input_text")}, USER],
     [item("system", "a\nb"), ASKED]),
    ("spoken", [USER, {"role": "assistant", "content": text("a", "b"), "phase": "x"}, USER],
     [ASKED, item("assistant", "ab"), ASKED]),
    ("refused", [USER, {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}],
     [ASKED, {"role": "assistant", "content": None, "refusal": "no"}]),
    ("one turn", [USER, item("assistant", "let me see"), call(), output()],
     [ASKED, item("assistant", "let me see") | {"tool_calls": [CALL]}, RESULT]),
    ("text behind a call", [USER, call(), item("assistant", "now"), output()],
     [ASKED, item("assistant", "now") | {"tool_calls": [CALL]}, RESULT]),
    ("rounds", [USER, call(), output(), call("call_2"), output("call_2")],
     [ASKED, CALLED, RESULT, CALLED | {"tool_calls": [CALL | {"id": "call_2"}]},
      RESULT | {"tool_call_id": "call_2"}]),
    ("parallel", [USER, call(), call("call_2"), output("call_2"), output()],
     [ASKED, CALLED | {"tool_calls": [CALL, CALL | {"id": "call_2"}]},
      RESULT | {"tool_call_id": "call_2"}, RESULT]),
    ("no arguments", [USER, call(arguments=""), output()],
     [ASKED, CALLED, RESULT]),
    ("namespace", [USER, call(namespace="ns"), output()],
     [ASKED,
      CALLED | {"tool_calls": [CALL | {"function": {"name": "ns__look", "arguments": "{}"}}]},
      RESULT]),
    ("custom", [USER, PATCH, {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}],
     [ASKED,
      CALLED | {"tool_calls": [
          {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "x"}}]},
      {"role": "tool", "tool_call_id": "c", "content": "ok"}]),
    ("listed output", [USER, call(), output(said=text("a", "b", kind="input_text"))],
     [ASKED, CALLED, RESULT | {"content": "a\nb"}]),
    ("image", [{"role": "user", "content": [*text("see", kind="input_text"), SEEN]}],
     [{"role": "user", "content": [{"type": "text", "text": "see"}, IMAGE]}]),
    ("file", [{"role": "user", "content": [{"type": "input_file", **PDF}]}],
     [{"role": "user", "content": [{"type": "file", "file": PDF}]}]),
    ("summary", [USER, {"type": "reasoning", "summary": text("hm", kind="summary_text"),
                        "content": None, "encrypted_content": None}, item("assistant", "a"), USER],
     [ASKED, item("assistant", "a") | {"reasoning_content": "hm"}, ASKED]),
    ("nothing thought", [USER, {"type": "reasoning", "summary": []}, call(), output()],
     [ASKED, CALLED, RESULT]),
)  # fmt: skip


@pytest.mark.parametrize(("items", "said"), [(row[1], row[2]) for row in READ],
                         ids=[row[0] for row in READ])  # fmt: skip
def test_items_become_messages(items: list[Json], said: list[Json]) -> None:
    assert messages(*items) == said


def test_a_text_is_the_users_and_instructions_stand_before_it() -> None:
    parsed = read("hi", instructions="be kind")
    assert [*parsed.request.messages] == [item("system", "be kind"), ASKED]


def test_images_of_a_result_stay_with_it_for_its_leaf_to_place() -> None:
    said = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": PNG}]
    *_, result = messages(USER, call(), output(said=said))
    assert result["content"] == [{"type": "text", "text": "a"}, IMAGE]
    assert RESULT_OF in result


HOSTED = ({"type": "web_search_call", "id": "ws_1"}, {"type": "made_up", "id": "x"},
          {"type": "compaction", "encrypted_content": "gAAAA"})  # fmt: skip


@pytest.mark.parametrize("odd", HOSTED, ids=[one["type"] for one in HOSTED])
def test_what_only_openai_reads_is_left_out_and_named(odd: Json) -> None:
    parsed = read([USER, odd, item("assistant", "a"), USER])
    assert [*parsed.request.messages] == [ASKED, item("assistant", "a"), ASKED]
    assert codes(parsed) == [("item_dropped", "input[1]")]


def test_a_call_of_openais_own_tools_is_a_functions_if_both_halves_are_there() -> None:
    asked = {"type": "local_shell_call", "call_id": "s", "action": {"command": ["ls"]}}
    told = {"type": "local_shell_call_output", "id": "s", "output": "files"}
    parsed = read([USER, asked, told])
    _, turn, result = parsed.request.messages
    assert turn["tool_calls"][0]["function"] == {
        "name": "local_shell",
        "arguments": '{"command":["ls"]}',
    }
    assert result["content"] == "files"
    assert codes(read([USER, asked, USER])) == [("item_dropped", "input[1]")]


REFUSED: tuple[tuple[str, Any, str], ...] = (
    ("no call", [USER, output("c9")],
     "No tool call found for function call output with call_id c9."),
    ("no output", [USER, call("c9"), USER], "No tool output found for function call c9."),
    ("one id twice", [USER, call(), call(), output()], "have the same id"),
    ("compaction", [USER, {"type": "compaction_trigger"}], "does not compact"),
    ("empty text", "", "empty string"),
    ("no items", [], "empty array"),
    ("no role", [{"role": "tool", "content": "x"}], "Invalid value for 'input[0].role'"),
    ("a file's id", [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}],
     "'input[0].content[0]' has no 'file_data'"),
    ("an image's id", [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}],
     "'input[0].content[0]' has no 'image_url'"),
    ("a system's image", [{"role": "system", "content": [SEEN]}], "Only users send images"),
    ("an unknown part", [{"role": "user", "content": [{"type": "video"}]}], "'input_text'"),
)  # fmt: skip


@pytest.mark.parametrize(("given", "words"), [(row[1], row[2]) for row in REFUSED],
                         ids=[row[0] for row in REFUSED])  # fmt: skip
def test_what_cannot_be_read_is_refused_in_words(given: Any, words: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(given)
    assert words in caught.value.message
    assert caught.value.status == 400


def test_a_mended_history_lacks_nothing() -> None:
    parsed = read([USER, call(), USER, output("c9")], repair=True)
    assert [one["role"] for one in parsed.request.messages] == ["user", "assistant", "tool", "user"]
