"""What an upstream refuses: tools as such are learned, a part of them is left out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from adapters.compatible import KIND as COMPATIBLE
from adapters.errors import GatewayError, Refused, from_words
from adapters.protocol import (
    ChatRequest,
    Event,
    Finish,
    Json,
    Opened,
    RequestContext,
    ToolCallStart,
)
from adapters.receipts import Receipt
from middleware.wrappers.emulation import ToolSettings, with_tools
from middleware.wrappers.emulation.automatic import Automatic
from middleware.wrappers.emulation.recent import RecentRefusals
from middleware.wrappers.emulation.refusals import Lesser, refuses_tools
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import answer, request, user
from tests.support.fold import ask, folded

NO_TOOLS = [
    # Ollama
    "registry.ollama.ai/library/gemma:2b does not support tools",
    '"gemma3:4b" does not support tools',
    # DeepSeek, SiliconFlow, DashScope, Mistral, Groq, Together, Perplexity
    "deepseek-reasoner does not support Function Calling",
    "This model does not support Function Calling, please try another one",
    "Function call is not supported for this model.",
    "<400> InternalError.Algo.InvalidParameter: The tool call is not supported.",
    "Function calling is not enabled for this model",
    "`tool calling` is not supported with this model",
    "Tool calling is not supported for this model.",
    "Model 'solar-mini' does not support function calling.",
    # OpenAI, Azure
    "tools is not supported in this model. For a list of supported models, see the guide.",
    "Functions are not supported for this API version or this model version.",
    "Unsupported parameter: 'tools' is not supported with this model.",
    "Unrecognized request argument supplied: tools",
    # OpenRouter
    "No endpoints found that support tool use. To learn more about routing, visit the docs.",
    'No endpoints found that support tool use. Try disabling "get_weather".',
    # Bedrock, vLLM, llama.cpp, others
    "This model doesn't support tool use.",
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    "tools param requires --jinja flag",
    "The model gemma-1 does not support native tool calling yet",
    "tool use is currently unavailable; tools are not supported by this endpoint",
    '{"code": 20041, "message": "Tool use is not supported"}',
    "当前模型不支持工具调用",
    "该模型不支持 function call。",
]
ANOTHER_MATTER = [
    "Thinking mode does not support this tool_choice",
    "deepseek-reasoner does not support this tool_choice",
    "tool_choice 'required' is not supported",
    "This model does not support tool_choice=required",
    "Thinking may not be enabled when tool_choice forces tool use.",
    "does not support parallel tool calls",
    "Parallel tool calls are not supported by this model.",
    "parallel_tool_calls=False is not supported by this model.",
    "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
    "This model only supports single tool-calls at once!",
    "strict mode is not supported for tools",
    "tools[0].function.strict: not supported",
    "images in tool messages are not supported",
    "tool messages do not support images",
    "Image content is not supported in tool messages",
    "This model doesn't support tool use in streaming mode.",
    "does not support tools with streaming",
    "The model does not support tools and images together",
    "json mode cannot be combined with tool/function calling",
    "Function calling with a response mime type: 'application/json' is unsupported",
    "response_format is not supported with tools",
    "Hosted tool 'web_search' is not supported with this model",
    "Tool type 'custom' is not supported",
    "does not support more than 128 tools",
    "Keyword 'patternProperties' is not supported in tool parameters",
    "function names with dots are not supported",
    "This function name is not allowed",
    "role 'tool' is not supported",
    "'functions' must not be empty",
    "tools must be a list",
    "Logprobs are not supported with tool calls",
    "不支持工具选择 tool_choice=required",
    "max_tokens is too large",
]


def refused(words: str, status: int = 400) -> GatewayError:
    return from_words(status, words, "relay")


@pytest.mark.parametrize("words", NO_TOOLS)
def test_a_refusal_of_tools_as_such_is_understood(words: str) -> None:
    assert refuses_tools(refused(words))
    assert refuses_tools(refused(words, 404))
    for status in (401, 403, 429, 500):
        assert not refuses_tools(refused(words, status))


@pytest.mark.parametrize("words", ANOTHER_MATTER)
def test_a_refusal_of_a_part_is_not_one_of_tools(words: str) -> None:
    assert not refuses_tools(refused(words))


TOOL: Json = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
STRICT: Json = {"type": "function", "function": {**TOOL["function"], "strict": True}}


CALL: Sequence[Event] = tuple(answer(said=[("id", "f", "{}")]))


def picky(words: str, refuses: Any, said: Sequence[Event] = CALL) -> FakeAdapter:
    """An upstream that refuses a request with a certain part, and answers any other one."""
    return FakeAdapter(usual=lambda request: [refused(words)] if refuses(request) else said)


def asked(**parts: Any) -> ChatRequest:
    tools = parts.pop("tools", (TOOL,))
    return replace(request(user("go")), tools=tools, **parts)


def heard(adapter: Any, one: ChatRequest) -> tuple[list[Event], Receipt]:
    events = ask(adapter, one)
    assert sum(isinstance(event, Opened) for event in events) == 1
    return events, tuple(folded(events).receipt)


def adapter_of(model: FakeAdapter) -> Automatic:
    adapter = with_tools(model, ToolSettings("auto", COMPATIBLE))
    assert isinstance(adapter, Automatic)
    return adapter


PARTS: dict[str, tuple[str, Any, ChatRequest, list[str]]] = {
    "choice": (
        "Thinking mode does not support this tool_choice",
        lambda one: one.tool_choice is not None,
        asked(tool_choice="auto"),
        [],
    ),
    "parallel": (
        "parallel_tool_calls=True is not supported by this model.",
        lambda one: "parallel_tool_calls" in one.params,
        asked(params={"parallel_tool_calls": True, "seed": 1}),
        ["parameter_dropped"],
    ),
    "strict": (
        "strict mode is not supported for tools",
        lambda one: any(tool["function"].get("strict") for tool in one.tools),
        asked(tools=(STRICT,)),
        ["strict_not_enforced"],
    ),
    "stream": (
        "This model doesn't support tool use in streaming mode.",
        lambda one: one.call.streamed,
        asked(call=RequestContext(streamed=True)),
        [],
    ),
}


@pytest.mark.parametrize("part", PARTS)
def test_what_was_refused_is_left_out_where_that_means_the_same(part: str) -> None:
    words, refuses, sent, codes = PARTS[part]
    model = picky(words, refuses)
    adapter = adapter_of(model)
    for round_ in (1, 2):
        events, receipt = heard(adapter, sent)
        assert [note.code for note in receipt] == codes
        assert any(isinstance(event, ToolCallStart) for event in events)
        # Nothing was learned: the whole is tried each time, and its tools are never emulated.
        assert len(model.asked) == 2 * round_
        assert all(one.tools for one in model.asked)
    assert model.asked[-2] == sent
    assert not adapter.refused


def test_several_parts_are_left_out_one_after_the_other() -> None:
    def refuses(one: ChatRequest) -> bool:
        return one.tool_choice is not None or "parallel_tool_calls" in one.params

    model = picky("tool_choice and parallel_tool_calls are not supported", refuses)
    sent = asked(tool_choice="auto", params={"parallel_tool_calls": True})
    _, receipt = heard(adapter_of(model), sent)
    assert [note.code for note in receipt] == ["parameter_dropped"]
    assert len(model.asked) == 3


def test_one_call_stays_one_call_where_the_upstream_will_not_be_told_so() -> None:
    said = answer(said=[("a", "f", "{}"), ("b", "f", "{}"), ("c", "f", "{}")])
    model = picky(
        "Unsupported parameter: 'parallel_tool_calls'",
        lambda one: "parallel_tool_calls" in one.params,
        said,
    )
    events, receipt = heard(adapter_of(model), asked(params={"parallel_tool_calls": False}))
    assert [event.id for event in events if isinstance(event, ToolCallStart)] == ["a"]
    assert [note.code for note in receipt] == ["parameter_dropped", "parallel_calls_dropped"]
    assert isinstance(events[-1], Finish)


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        ("Thinking mode does not support this tool_choice", asked(tool_choice="required")),
        ("tool_choice is not supported", asked(tool_choice=None)),
        ("tool_choice is not supported", asked(tool_choice="none")),
        ("strict mode is not supported for tools", asked()),
        ("images in tool messages are not supported", asked(tools=(STRICT,))),
        ("max_tokens is too large", asked(tool_choice="auto")),
    ],
)
def test_what_would_mean_something_else_is_the_clients_to_change(
    words: str, sent: ChatRequest
) -> None:
    model = picky(words, lambda _: True)
    adapter = adapter_of(model)
    with pytest.raises(Refused, match="answered 400"):
        heard(adapter, sent)
    assert model.asked == [sent]
    assert not adapter.refused


def test_a_refusal_that_stays_comes_to_an_end() -> None:
    model = picky("tool_choice and strict are not supported", lambda _: True)
    with pytest.raises(Refused):
        heard(adapter_of(model), asked(tool_choice="auto", tools=(STRICT,)))
    assert len(model.asked) == 3


def test_a_failure_that_is_no_refusal_takes_nothing_away() -> None:
    for status in (401, 403, 429, 500, 503):
        lesser = Lesser(asked(tool_choice="auto"))
        assert lesser.without_refused(refused("no tool_choice", status)) is None


def test_a_refusal_of_tools_is_told_as_long_as_it_counts() -> None:
    model = picky("x does not support tools", lambda one: bool(one.tools), answer(text="Hi."))
    adapter = adapter_of(model)
    for _ in range(2):
        _, receipt = heard(adapter, asked())
        assert [note.code for note in receipt] == ["tools_emulated"]
    assert [bool(one.tools) for one in model.asked] == [True, False, False]
    # Of this model, and of no other one.
    heard(adapter, replace(asked(), model="other"))
    assert [bool(one.tools) for one in model.asked] == [True, False, False, True, False]


def test_a_refusal_that_counts_no_more_is_neither_planned_with_nor_told() -> None:
    model = picky("x does not support tools", lambda one: bool(one.tools), answer(text="Hi."))
    adapter = replace(adapter_of(model), refused=RecentRefusals(seconds=0))
    for _ in range(2):
        heard(adapter, asked())
        assert adapter.plan(asked())[0].body["messages"] == [user("go")]
    assert [bool(one.tools) for one in model.asked] == [True, False, True, False]


def test_of_too_many_refusals_the_oldest_is_forgotten() -> None:
    recent = RecentRefusals(most=2)
    for model in ("a", "b", "a", "c"):
        recent.add(model)
    assert [model in recent for model in "abc"] == [True, False, True]
