"""Receipts: what translation did that was not the identity, and every code they have.

`docs/receipts.md` is written from this file. Clients branch on codes: one keeps its name for good.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

LeftOut = Literal[
    "audio_dropped", "cache_breakpoints_dropped", "context_may_be_truncated", "detail_dropped",
    "effort_dropped", "empty_text_dropped", "empty_turn_dropped", "image_detail_dropped",
    "image_not_seen", "item_dropped", "member_dropped", "name_dropped", "parameter_dropped",
    "part_dropped", "reasoning_dropped", "result_dropped", "result_replaced", "sampling_ignored",
    "stop_blank_dropped", "strict_dropped", "temperature_dropped", "thinking_budget_dropped",
    "thinking_disabled", "thinking_disabled_history", "thinking_disabled_prefill",
    "thinking_disabled_tool_choice", "thinking_dropped", "thinking_missing_history",
    "thinking_unsigned", "tool_choice_ignored", "tool_dropped", "top_k_dropped", "top_p_dropped",
]  # fmt: skip
Changed = Literal[
    "arguments_wrapped", "beginning_added", "cache_lifetime_shortened", "cache_lifetime_unknown",
    "custom_tool_as_function", "effort_adjusted", "effort_approximated", "ending_added",
    "grammar_as_words", "half_character_replaced", "item_as_function",
    "json_object_instructed", "json_schema_as_prompt", "json_schema_instructed",
    "json_word_added", "max_tokens_lowered", "messages_reordered", "name_as_prefix",
    "name_in_text", "parts_joined", "reasoning_effort_changed", "refusal_as_text",
    "result_made_up", "result_paired", "schema_in_words", "schema_merged", "schema_reduced",
    "schema_root_merged", "strict_not_enforced", "system_as_user_text", "system_moved",
    "temperature_clamped", "thinking_adapted", "thinking_budget_lowered", "thinking_not_disabled",
    "tool_choice_not_enforced", "user_aliased", "user_hashed",
]  # fmt: skip
Told = Literal[
    "annotations_dropped", "answer_member_dropped", "arguments_as_text", "arguments_invalid",
    "arguments_late", "arguments_mismatch", "beta_dropped", "block_not_shown", "call_without_name",
    "choices_dropped", "citations_dropped", "custom_input_invalid", "dropped_by_config",
    "empty_arguments_dropped", "finish_unknown", "finish_without_calls", "image_dropped",
    "logprobs_dropped", "parallel_calls_dropped", "price_unknown", "prompt_lines_dropped",
    "reasoner_failed", "reasoning_hidden", "recall_not_kept", "recall_unavailable", "refusal",
    "result_cut", "rounds_exhausted", "search_failed", "thought_lost", "thoughts_left",
    "thoughts_lost", "thoughts_restored", "tool_call_corrected", "tool_call_withheld",
    "tool_name_read", "tool_repair_failed", "tool_shadowed", "tool_unknown", "tools_emulated",
    "turn_paused", "usage_estimated", "usage_unknown",
]  # fmt: skip


class OwnCode(str):
    """A code of a kind from another distribution, which declares and documents it itself."""


Code = LeftOut | Changed | Told | OwnCode


class Note(NamedTuple):
    """One thing translation did that was not the identity."""

    code: Code
    field: str
    text: str

    @property
    def top(self) -> str:
        """The field of the request that this is about or within."""
        return self.field.partition(".")[0].partition("[")[0]


Receipt = tuple[Note, ...]
AddNote = Callable[[Code, str, str], None]
"""Code, field and text."""


class Notes(list[Note]):
    """The receipt of one request while it is written: what happened, in the order it did."""

    __slots__ = ()

    def add(self, code: Code, field: str, text: str) -> None:
        self.append(Note(code, field, text))

    def add_all(self, receipt: Receipt) -> None:
        self += receipt

    def receipt(self) -> Receipt:
        return tuple(self)

    def copy(self) -> Notes:
        return Notes(self)


# Who says it: what happened, and what to do where something can be done.
LEFT_OUT: Mapping[LeftOut, str] = {
    "audio_dropped": "Ollama: an answer in audio was left out of the history. Send its text.",
    "cache_breakpoints_dropped": "Claude: there are more than four places to cache up to, or one "
    "is not on text, an image, a call or a result.",
    "context_may_be_truncated": "Ollama: the conversation may not fit into the model's context. "
    "Shorten it, or set a larger `num_ctx`.",
    "detail_dropped": "Ollama: `detail` of an image was left out. There is one level of detail.",
    "effort_dropped": "DeepSeek: thinking is on, or off, for this call: there is no such effort.",
    "empty_text_dropped": "Claude: a text without a visible character was left out.",
    "empty_turn_dropped": "Door, Claude: an assistant message without text or calls was left out.",
    "image_detail_dropped": "Claude: `detail` of an image was left out. There is one level.",
    "image_not_seen": "Pipeline: the reasoner has no `vision`: it was told that an image is there.",
    "item_dropped": "Door: an item or block that only OpenAI or Claude can read was left out.",
    "member_dropped": "Door, all upstreams: the upstream has no place for this member.",
    "name_dropped": "Claude, Ollama: a `name` was left out. It repeats the role, or has no place.",
    "parameter_dropped": "Door, emulation, all upstreams: the upstream has nothing like the field, "
    "or another field outranks it. The note's text says which.",
    "part_dropped": "DeepSeek: a member of an assistant message was left out.",
    "reasoning_dropped": "Claude, compatible: thoughts were not sent back: the upstream takes none "
    "or only its own with their signature (`thinking_blocks`).",
    "result_dropped": "Door: a tool's result without a call was left out (`history_repair`).",
    "result_replaced": "Door: a call had two results. The last one counts.",
    "sampling_ignored": "DeepSeek: the field has no effect while the model thinks.",
    "stop_blank_dropped": "Claude: stop sequences without a visible character were left out.",
    "strict_dropped": "Claude, DeepSeek: `strict` of a tool cannot be kept. Check its arguments.",
    "temperature_dropped": "Claude: `temperature` was left out. The note's text says why.",
    "thinking_budget_dropped": "DeepSeek, Ollama: the budget of thoughts was left out.",
    "thinking_disabled": "DeepSeek: the model does not think when a call is forced.",
    "thinking_disabled_history": "Claude: no thinking, as calls of this round came back without "
    "their thoughts. Switch recall on, or send `thinking_blocks` back.",
    "thinking_disabled_prefill": "Claude: no thinking, as the last message is the assistant's.",
    "thinking_disabled_tool_choice": "Claude: no thinking, as a call is forced.",
    "thinking_dropped": "Claude, DeepSeek, Ollama: the model does not think, or takes no signed "
    "thoughts. At Claude `max_tokens` may be too small.",
    "thinking_missing_history": "Claude: calls were sent without their thoughts. Switch recall on, "
    "or send `thinking_blocks` back.",
    "thinking_unsigned": "Claude: thinking blocks without a signature were left out.",
    "tool_choice_ignored": "Door: there is a choice of tools, and no tools.",
    "tool_dropped": "Door: a tool that OpenAI or Anthropic run was left out. Send a function of "
    "your own, or give the model a search (`server_tools`).",
    "top_k_dropped": "Claude: `top_k` was left out. The note's text says why.",
    "top_p_dropped": "Claude: `top_p` was left out. The note's text says why.",
}
CHANGED: Mapping[Changed, str] = {
    "arguments_wrapped": "Claude, Ollama: arguments in the history are no JSON object. They were "
    'sent as `{"_raw": …}`.',
    "beginning_added": "Claude: a user's message was put before an assistant's first one.",
    "cache_lifetime_shortened": "Claude: a prefix is cached for one hour at most.",
    "cache_lifetime_unknown": "Claude: caches live `5m` or `1h`. Sent as `5m`.",
    "custom_tool_as_function": "All upstreams: a free-text tool was sent as a function with one "
    "string. Its answers come back as free text.",
    "effort_adjusted": "Claude: the model lacks this `reasoning_effort`; the nearest was sent.",
    "effort_approximated": "DeepSeek: the nearest `reasoning_effort` was sent.",
    "ending_added": "Claude, DeepSeek: `(continue)` was put behind a last assistant message, as "
    "the model answers only to a user.",
    "grammar_as_words": "Door: a tool's grammar was put into its description and is not enforced.",
    "half_character_replaced": "Door: half of a character (an emoji cut in two) became U+FFFD. Cut "
    "texts between characters.",
    "item_as_function": "Door: a tool that OpenAI or Anthropic defines was sent as a function.",
    "json_object_instructed": "Claude: there is no JSON mode. JSON was asked for in the prompt.",
    "json_schema_as_prompt": "DeepSeek: the schema was asked for in the prompt. Check the answer.",
    "json_schema_instructed": "Claude: the schema was asked for in the prompt. Check the answer.",
    "json_word_added": "DeepSeek: JSON mode needs the word JSON in the prompt. It was put there.",
    "max_tokens_lowered": "All upstreams: the model cannot answer at such length. Clients that "
    "send one number to every model need not heed it.",
    "messages_reordered": "Door: results were put right behind their calls.",
    "name_as_prefix": "Claude: a speaker's `name` was put before the text.",
    "name_in_text": "Ollama: a speaker's `name` was put before the text.",
    "parts_joined": "DeepSeek, Ollama: the text parts of a message became lines of one text.",
    "reasoning_effort_changed": "Ollama: the nearest level of thinking was sent.",
    "refusal_as_text": "Claude, DeepSeek, Ollama: a refusal in the history was sent as text.",
    "result_made_up": "Door: a call had no result, and was given one that says so "
    "(`history_repair`; Ollama's always). Send a result for every call.",
    "result_paired": "Door: a result without an id was given to the one open call "
    "(`history_repair`). Send `tool_call_id`.",
    "schema_in_words": "Claude: a part of the schema stands in a description and is not enforced.",
    "schema_merged": "Ollama: the alternatives of a schema became one object.",
    "schema_reduced": "Ollama: a part of the schema is not enforced. Check what comes.",
    "schema_root_merged": "Claude: the alternatives of a schema became one object.",
    "strict_not_enforced": "Emulation, Ollama: arguments are not held to the schema. Check them.",
    "system_as_user_text": "Claude: a later system message was sent as text of the user's turn.",
    "system_moved": "Claude: a later system message was put behind the user's turn.",
    "temperature_clamped": "Claude: the temperature was lowered to 1, the highest there is.",
    "thinking_adapted": "Claude: the model lacks this type of `thinking`; the nearest was sent.",
    "thinking_budget_lowered": "Claude: the thinking budget was lowered. Raise `max_tokens`.",
    "thinking_not_disabled": "Claude: the model always thinks: it was asked for little of it.",
    "tool_choice_not_enforced": "Claude, Ollama: the model could only be asked to call the tool, "
    "or made no call. Be ready for an answer in text.",
    "user_aliased": "DeepSeek: the user's id was written in the characters DeepSeek takes.",
    "user_hashed": "Claude: only ids that name nobody are taken. A digest of yours was sent.",
}
TOLD: Mapping[Told, str] = {
    "annotations_dropped": "Door: the client's protocol has no place for sources.",
    "answer_member_dropped": "All upstreams: a member of the answer had a type without meaning.",
    "arguments_as_text": "Door: arguments in the history are a text instead of an object.",
    "arguments_invalid": "All upstreams: a call's arguments are no JSON object, and passed on.",
    "arguments_late": "All upstreams: a piece came after its call was complete. It was left out.",
    "arguments_mismatch": "Ollama: the arguments of a call do not fit the tool's schema.",
    "beta_dropped": "Claude: betas that the upstream may not know were not sent (`betas`).",
    "block_not_shown": "Claude, door: the answer has a part for which the client's protocol "
    "has no place.",
    "call_without_name": "Compatible: a call without a name was left out.",
    "choices_dropped": "Compatible: only the first choice was passed on.",
    "citations_dropped": "Claude, compatible: sources were named for which OpenAI has no place.",
    "custom_input_invalid": "All upstreams: a free-text call has another form, and is passed on.",
    "dropped_by_config": "Route: the config's `drop` left the field out.",
    "empty_arguments_dropped": "All upstreams: arguments began with a needless `{}`.",
    "finish_unknown": "Claude, compatible, Ollama: an unknown reason to end was taken for `stop`.",
    "finish_without_calls": "Claude, compatible: the answer ended for a call, and has none.",
    "image_dropped": "All upstreams: a tool gave an image, and the model reads none.",
    "logprobs_dropped": "Compatible, Ollama: log probabilities of tokens without text.",
    "parallel_calls_dropped": "Emulation, all upstreams: only the first call was passed on, as "
    "`parallel_tool_calls` is false.",
    "price_unknown": "Ledger: nobody knows what the model costs: it counts as 0. Set its `price`.",
    "prompt_lines_dropped": "Emulation: the model repeated lines of the prompt. Left out.",
    "reasoner_failed": "Pipeline: the answer was made without the thought, or with a part of it.",
    "reasoning_hidden": "Show: thoughts are not shown beside JSON. To see them set "
    '`reasoning = "reasoning_content"`.',
    "recall_not_kept": "Recall, server tools: this turn was not stored, so later ones go up "
    "without it.",
    "recall_unavailable": "Recall, server tools: the store cannot be read. The request went up as "
    "it was sent.",
    "refusal": "Claude, door: the model refused to answer, or a filter ended the answer.",
    "result_cut": "Server tools: the result of a tool was longer than its `max_result`.",
    "rounds_exhausted": "Server tools: the model still wanted to call tools after `max_rounds` "
    "rounds, or after as many calls as the client allows. It was asked once more without any.",
    "search_failed": "Pipeline: the web search brought nothing.",
    "thought_lost": "Pipeline: the thought of this question is not known any more.",
    "thoughts_left": "All upstreams, recall: thoughts of another upstream, which answered before, "
    "or such as another gateway has sealed, were left out.",
    "thoughts_lost": "Door: a thought that the request names is not kept here. Recall may know it.",
    "thoughts_restored": "Recall: thoughts the client does not send were put back.",
    "tool_call_corrected": "Emulation: the model was asked again, as a call was not usable.",
    "tool_call_withheld": "Emulation, door: a call was not allowed, or was cut by the token limit.",
    "tool_name_read": "Emulation: the name of a tool was written in another way.",
    "tool_repair_failed": "Emulation: a call stayed unusable after asking again.",
    "tool_shadowed": "Server tools: the client has a tool of the same name. The client's counts.",
    "tool_unknown": "Ollama: the model called a tool it was not offered.",
    "tools_emulated": "Emulation: the model has no tools, so calls were asked for by prompt. Set "
    '`tools = "emulated"` to save the first try.',
    "turn_paused": "Claude: the answer was paused. Send the conversation again to let it go on.",
    "usage_estimated": "Pipeline, ledger, all upstreams: not all tokens were counted. What is "
    "missing is 0, or an estimate of a pipeline or of the ledger.",
    "usage_unknown": "Door: the upstream counted no tokens. The zeros are no figures.",
}

_HEAD = """\
# Receipts

Written by `python -m adapters.receipts` from the codes the gateway has: edit \
`adapters/receipts.py`, not this file.

Upstreams differ, so not every request can be passed on as it was sent. What was left out or said \
in another way is named by a *note*: a code, the field it is about, and a text. All notes of a \
request are its *receipt*. The header `x-usetool-warnings` has `code:field` of each note that is \
known at the first byte; what is learned later stands in `x_usetool.warnings`. The log, `usetool \
last` and `usetool explain` show the texts too. With `strict = true` a request is refused for what \
is known before it is sent; what the upstream shows later is told.

A code keeps its name. *Compatible* is every upstream that answers in OpenAI's chat completions, \
*door* the gateway itself, before it asks an upstream.
"""


def reference() -> str:
    """`docs/receipts.md`."""
    return "\n".join(
        [
            _HEAD,
            _section("Left out of the request: refused with `strict = true`", LEFT_OUT),
            _section("Said in another way: refused with `strict = true`", CHANGED),
            _section("Told, and never refused", TOLD),
        ]
    )


def _section(title: str, codes: Mapping[Any, str]) -> str:
    rows = ["| code | who says it | what happened, what to do |", "| --- | --- | --- |"]
    for code, sentence in codes.items():
        who, _, what = sentence.partition(": ")
        rows.append(f"| `{code}` | {who} | {what[0].upper()}{what[1:]} |")
    return "\n".join([f"## {title}\n", *rows, ""])


if __name__ == "__main__":
    # Windows would write other line ends and another encoding.
    sys.stdout.buffer.write(reference().encode())
