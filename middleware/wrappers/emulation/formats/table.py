"""The formats models were trained on: one table, one reader.

A format has its own sentinel, so it is accepted wherever a declared name stands in it. Order and
nesting of the wrappers do not matter: they are dropped as soon as a call is seen inside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, NamedTuple

from adapters.shared.think_tags import TAGS
from middleware.wrappers.emulation.formats import bodies
from middleware.wrappers.emulation.formats.elements import SPACE
from middleware.wrappers.emulation.formats.raw_call import RawCall

Body = Callable[[str], list[RawCall]]
Ends = Literal["value", "closer", "either"]


def is_special(token: str) -> bool:
    """Is it a token that no prose is written with?"""
    return token.startswith(("<|", "<｜", "[|", "]<]")) or token.isupper()


class Format(NamedTuple):
    """One spelling of a call."""

    name: str
    openers: tuple[str, ...]
    closers: tuple[str, ...]
    read: Body
    ends: Ends = "either"
    """Its end: the JSON value's own, the closer, or whichever the first character calls for."""
    again: str = ""
    """What stands between two bodies behind one opener."""
    reads: bool = True
    """False: a wrapper, which holds calls of other formats only."""
    whole: bool = False
    """Its parameters end with its closer, which is plain text: without it some may be missing."""

    nests: bool = False
    """Its opener may stand in its body again: what is behind the last one counts."""

    @property
    def marks(self) -> tuple[str, ...]:
        """What a value in its body ends before."""
        return *self.closers, *self.openers

    @property
    def bounds(self) -> tuple[str, ...]:
        """What ends a body of free text that was not closed: a call's special token."""
        return () if self.nests else tuple(filter(is_special, self.openers))


def _nothing(_body: str) -> list[RawCall]:
    return []


# How DeepSeek's marks come out: of its own tokens, or typed with other bars and blanks.
_BARS = ("｜▁", "|▁", "｜ ", "| ", "｜\\_", "|\\_", "|_")


def _deepseek(words: str) -> tuple[str, ...]:
    return tuple(f"<{bar[0]}{words.replace(' ', bar[1:])}{bar[0]}>" for bar in _BARS)


def _k3(side: str, words: str, end: str = "<|sep|>") -> tuple[str, ...]:
    """Kimi K3's marks are three tokens; models put blanks between them."""
    blanks = ("", " ")
    return tuple(
        f"<|{side}|>{before}{words}{behind if end else ''}{end}"
        for before in blanks
        for behind in (blanks if end else blanks[:1])
    )


def _named(tag: str) -> tuple[str, ...]:
    """A tag with a name; the blank may be lost, or come out as a tokenizer writes it."""
    return tuple(f"<{tag}{blank}name=" for blank in (" ", "", "Ġ"))


# What stands before the words in the tags of `<invoke name=…>`: nothing (Anthropic's old form,
# MiniMax M2), or the model's own mark (DeepSeek V3.2, GigaChat 3.5, Step 3, …).
_MARKS = ("", "antml:", "atem:", "steptml:", "｜DSML｜", "｜GCML｜")

FORMATS: tuple[Format, ...] = (
    Format("hermes", ("<tool_call>", "<function_call>"), ("</tool_call>", "</function_call>"),
           bodies.tagged_calls),
    Format("hunyuan-4", ("<tool_call:opensource>",), ("</tool_call:opensource>",),
           bodies.tagged_calls),
    Format("k2-horizon", ("<ifm|tool_call>",), ("</ifm|tool_call>",), bodies.tagged_calls),
    Format("qwen-xml", ("<function=",), ("</function>",), bodies.xml_calls, "closer", whole=True),
    Format("function-xml", _named("function"), ("</function>",),
           bodies.xml_calls, "closer", whole=True),
    *(
        Format("invoke", _named(f"{mark}invoke"), (f"</{mark}invoke>", "/>"),
               partial(bodies.marked_calls, mark), "closer", whole=True)
        for mark in _MARKS
    ),
    Format("minimax-m3", (SPACE + "<invoke name=",), (SPACE + "</invoke>",),
           bodies.spaced_calls, "closer"),
    Format("mistral", ("[TOOL_CALLS]",), ("[/TOOL_CALLS]",), bodies.json_calls, "value"),
    # What LM Studio tells models that know no format of their own.
    Format("lm-studio", ("[TOOL_REQUEST]",), ("[END_TOOL_REQUEST]", "[TOOL_REQUEST_END]"),
           bodies.json_calls, "value"),
    Format("llama", ("<|python_tag|>",), (), bodies.llama_calls, "value", ";"),
    # With ASCII bars and lines below it is Kimi K2's too.
    Format("deepseek", _deepseek("tool call begin"), _deepseek("tool call end"),
           bodies.deepseek_calls, "value"),
    Format("kimi-k3", _k3("open", "call", ""), _k3("close", "call"), bodies.k3_calls, "closer"),
    Format("lfm2", ("<|tool_call_start|>",), ("<|tool_call_end|>",), bodies.python_calls, "closer"),
    Format("llama-python", ("<|python_start|>",), ("<|python_end|>",),
           bodies.python_calls, "closer"),
    Format("gemma", ("<|tool_call>",), ("<tool_call|>",), bodies.gemma_calls, "closer"),
    Format("functiongemma", ("<start_function_call>",), ("<end_function_call>",),
           bodies.gemma_calls, "closer"),
    Format("solar", ("<|tool_call:start|>",), ("<|tool_call:end|>",),
           bodies.solar_calls, "closer", whole=True),
    Format("step3", ("<｜tool_call_begin｜>",), ("<｜tool_call_end｜>",),
           bodies.step_calls, "closer", whole=True),
    Format("gigachat", ("<|message_sep|>\n\nfunction call<|role_sep|>", "<|function_call|>"), (),
           bodies.json_calls, "value"),
    Format("granite", ("<|tool_call|>",), (), bodies.json_calls, "value"),
    Format("command-r", ("<|START_ACTION|>",), ("<|END_ACTION|>",), bodies.json_calls),
    Format("apertus", ("<|tools_prefix|>",), ("<|tools_suffix|>",), bodies.keyed_calls),
    Format("tool-list", ("<|tool_calls|>",), ("<|/tool_calls|>",), bodies.python_calls, "value"),
    Format("tool-input", ("<tool>",), ("</tool_input>",), bodies.input_calls, "closer"),
    Format("nemotron", ("<TOOLCALL>",), ("</TOOLCALL>",), bodies.json_calls),
    Format("internlm", ("<|action_start|><|plugin|>",), ("<|action_end|>",), bodies.json_calls),
    Format("longcat", ("<longcat_tool_call>",), ("</longcat_tool_call>",), bodies.tagged_calls),
    Format("message", ("<|content_invoke_tool_json|>",), ("<|end_message|>",),
           bodies.message_calls, "closer", nests=True),
    # Wrappers that may also hold the JSON themselves.
    Format("calls", ("<tool_calls>",), ("</tool_calls>",), bodies.json_calls),
    Format("dots", ("<dots_function_call>",), ("</dots_function_call>",), bodies.json_calls),
    Format("functions", ("<function_calls>",), ("</function_calls>",), bodies.json_calls),
    *(
        Format("wrapper", (opener,), (closer,), _nothing, "closer", reads=False)
        for opener, closer in (
            *((f"<{mark}{word}>", f"</{mark}{word}>")
              for mark in filter(None, _MARKS) for word in ("function_calls", "tool_calls")),
            ("<tool_calls:opensource>", "</tool_calls:opensource>"),
            ("<ifm|tool_calls>", "</ifm|tool_calls>"),
            ("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),
            ("<minimax:tool_call>", "</minimax:tool_call>"),
            ("<seed:tool_call>", "</seed:tool_call>"),
            (SPACE + "<tool_call>", SPACE + "</tool_call>"),
            *zip(_deepseek("tool calls begin"), _deepseek("tool calls end"), strict=True),
            ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
            *zip(_k3("open", "tools"), _k3("close", "tools"), strict=True),
        )
    ),
)  # fmt: skip

BY_OPENER: Mapping[str, Format] = {
    opener: format for format in FORMATS for opener in format.openers
}
_BETWEEN = frozenset(("<｜tool_sep｜>",))  # stands between the calls of Step 3
CLOSERS = _BETWEEN.union(*(format.closers for format in FORMATS)) - {"/>"}
# Thoughts: opener → closer. A closer without its opener ends a thought the template began.
THOUGHTS: Mapping[str, str] = {
    **TAGS,
    **dict(zip(_k3("open", "think"), _k3("close", "think"), strict=True)),
}
# Special tokens that frame an answer; they are never text.
FRAMES = frozenset((
    "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>",
    "<|CHATBOT_TOKEN|>", "<|message_model|>", "<|content_text|>", "<|end_message|>",
    *_k3("open", "response"), *_k3("close", "response"), *_k3("close", "message"),
    "[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]",
))  # fmt: skip
# What ends an answer in a template; dropped at its very end, as is every token of the form `<|…|>`.
ENDS = frozenset((
    "<s>", "</s>", "<eos>", "<EOS>", "[EOS]", "<end_of_turn>", "<start_of_turn>",
    *_deepseek("end of sentence"), "<turn|>", "<end_of_utterance>", "[/INST]",
    "[e~[", "]~b]", "]~!b[",
))  # fmt: skip
_SPECIAL = r"<\|[\w▁\-]{1,48}\|>|<｜[\w▁\-]{1,48}｜>|\[\|\w{1,48}\|\]"
_SPECIAL_BEGUN = re.compile(r"(?:<[|｜][\w▁\-]{1,48}[|｜]?|\[\|\w{0,48}\|?|[<\[])\Z")
_LONGEST_SPECIAL = 52
# What a template puts before a tool's result: a model that writes it invents the result.
RESULTS = frozenset((
    "<tool_response>", "<|tool_response>", "<function_results>", "<start_function_response>",
    "<｜tool▁outputs▁begin｜>", "<｜tool▁output▁begin｜>", "[TOOL_RESULTS]", "<|observation|>",
))  # fmt: skip
HARMONY = frozenset(("<|channel|>", "<|start|>"))

_MEANING = frozenset((*BY_OPENER, *CLOSERS, *FRAMES, *HARMONY))
TOKENS: tuple[str, ...] = tuple(
    sorted({*BY_OPENER, *CLOSERS, *FRAMES, *ENDS, *RESULTS, *HARMONY}, key=len, reverse=True)
)
KNOWN = re.compile("|".join(map(re.escape, TOKENS)))
TOKEN = re.compile(f"{KNOWN.pattern}|{_SPECIAL}")
LINED = tuple(token.partition("\n")[0] for token in TOKENS if "\n" in token)
STOP = re.compile(r"\n|" + TOKEN.pattern)


def prefixes(words: tuple[str, ...]) -> frozenset[str]:
    """Every proper beginning of the words."""
    return frozenset(word[:length] for word in words for length in range(1, len(word)))


PARTIAL = prefixes(TOKENS)
_FIRSTS = re.compile("[" + "".join(map(re.escape, sorted({word[0] for word in TOKENS}))) + "]")
LONGEST = max(_LONGEST_SPECIAL, *map(len, TOKENS))


def is_end(token: str) -> bool:
    """May it frame the end of an answer? Every special token may that means nothing else."""
    return token in ENDS or (is_special(token) and token not in _MEANING)


def may_grow(text: str) -> bool:
    """May more text make this a token?"""
    return text in PARTIAL or _SPECIAL_BEGUN.match(text) is not None


def held_from(text: str, at: int) -> int:
    """Where the longest end of the text begins that may become a token."""
    for first in _FIRSTS.finditer(text, max(at, len(text) - LONGEST)):
        if may_grow(text[first.start() :]):
            return first.start()
    return len(text)


def any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, words)))


# How the first characters of a body look that may hold a call; prose about a tag is told by them.
PLAUSIBLE = re.compile(
    r"(?:\s|\\n)*(?:[{\[<｛]|```|[\"'“][{\[\w]|[\w.\-:]+[^\S\n]*(?:[<{\[:(\n\\>\"=/]|\w+=|$))"
)
INNER = re.compile(r"(?:\s|\\n)*(?:[{\[｛]|\Z)")  # the same in a wrapper
UNDECIDED = re.compile(r"(?:\s|\\n?)*+(?:`{1,2}|[\"'“]|[\w.\-:]*+[^\S\n]*+\w*+)")
