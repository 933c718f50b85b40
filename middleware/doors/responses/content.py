"""Parts of items → parts of messages."""

from __future__ import annotations

from typing import Any

from adapters.errors import BadRequest
from adapters.protocol import Json


def user_content(content: str | list[Json], where: str) -> str | list[Json]:
    """A text alone is a string, as most clients of chat send it."""
    if isinstance(content, str):
        return content
    if len(content) == 1 and "text" in content[0]:
        text: str = content[0]["text"]
        return text
    return [_part(part, f"{where}.content[{at}]") for at, part in enumerate(content)]


def text_of_parts(content: str | list[Json], where: str) -> str:
    if isinstance(content, str):
        return content
    for at, part in enumerate(content):
        if "text" not in part:
            place = f"{where}.content[{at}]"
            raise _unsupported(place, f"'{place}' is no text. Only users send images and files.")
    return "\n".join(part["text"] for part in content)


def result_content(output: str | list[Json], where: str) -> str | list[Json]:
    """What a tool gave: text, or parts where there are images."""
    if isinstance(output, str):
        return output
    parts = [_part(part, f"{where}[{at}]") for at, part in enumerate(output)]
    for part in parts:
        if part["type"] == "file":
            raise _unsupported(where, f"'{where}' has a file. Send its text, or images of it.")
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(part: Json, where: str) -> Json:
    match part["type"]:
        case "input_image":
            return _image(part, where)
        case "input_file":
            return _file(part, where)
        case "refusal":
            return {"type": "text", "text": part["refusal"]}
    return {"type": "text", "text": part["text"]}


def _image(part: Json, where: str) -> Json:
    if not part.get("image_url"):
        raise _elsewhere(where, "image_url", "'data:image/png;base64,<data>' or an https address")
    image: Json = {"url": part["image_url"]}
    if part.get("detail") not in (None, "auto"):
        image["detail"] = part["detail"]
    return {"type": "image_url", "image_url": image}


def _file(part: Json, where: str) -> Json:
    if not part.get("file_data"):
        raise _elsewhere(where, "file_data", "'data:application/pdf;base64,<data>'")
    known = ("file_data", "filename")
    return {"type": "file", "file": {name: part[name] for name in known if part.get(name)}}


def _elsewhere(where: str, member: str, example: str) -> BadRequest:
    text = (
        f"'{where}' has no '{member}', and files stored elsewhere cannot be read. Send {example}."
    )
    return _unsupported(where, text)


def _unsupported(where: str, text: Any) -> BadRequest:
    return BadRequest(text, code="unsupported_parameter", param=where)
