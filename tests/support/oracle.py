"""LiteLLM as an examiner: what it makes of the bytes an upstream sent; a process of its own.

Reads questions from standard input and writes answers to standard output, both JSON, because it
takes seconds to import and changes much of what it touches.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

Json = dict[str, Any]


async def answer(question: Json) -> Json:
    import litellm
    import openai

    try:
        given = await litellm.acompletion(**question, api_key="k", num_retries=0, max_retries=0)
        if question.get("stream"):
            chunks = [chunk async for chunk in given]
            return folded([chunk.model_dump() for chunk in chunks])
        return told(given.model_dump())
    except openai.OpenAIError as error:
        return {"status": getattr(error, "status_code", None)}


def told(completion: Json) -> Json:
    (choice,) = completion["choices"]
    message = choice["message"]
    return {
        "text": message.get("content") or "",
        "reasoning": message.get("reasoning_content") or "",
        "calls": [
            [call["function"]["name"], call["function"]["arguments"]]
            for call in message.get("tool_calls") or ()
        ],
        "reason": choice["finish_reason"],
        "usage": figures(completion.get("usage")),
    }


def folded(chunks: list[Json]) -> Json:
    """Put a stream together the way every client does."""
    found: Json = {"text": "", "reasoning": "", "calls": [], "reason": None, "usage": None}
    for chunk in chunks:
        found["usage"] = figures(chunk.get("usage")) or found["usage"]
        for choice in chunk["choices"]:
            delta = choice["delta"]
            found["text"] += delta.get("content") or ""
            found["reasoning"] += delta.get("reasoning_content") or ""
            found["reason"] = choice.get("finish_reason") or found["reason"]
            for piece in delta.get("tool_calls") or ():
                while len(found["calls"]) <= piece["index"]:
                    found["calls"].append(["", ""])
                call = found["calls"][piece["index"]]
                call[0] += piece["function"].get("name") or ""
                call[1] += piece["function"].get("arguments") or ""
    return found


def figures(usage: Json | None) -> list[int] | None:
    return [usage["prompt_tokens"], usage["completion_tokens"]] if usage else None


async def main() -> None:
    import litellm

    litellm.suppress_debug_info = True  # it prints advice among the answers
    questions = json.load(sys.stdin)
    print(json.dumps([await answer(question) for question in questions]))


if __name__ == "__main__":
    # Else it asks the web for its price list.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    asyncio.run(main())
