"""What a pipeline tells, as the OpenAI door says it."""

from __future__ import annotations

import orjson

from adapters.protocol import Aside, Finish, Opened, ReasoningDelta, TextDelta, Upstream, Usage
from middleware.doors.chat.chunks import Chunks
from middleware.doors.chat.fold import Fold
from middleware.doors.chat.words import Heading
from middleware.doors.x_usetool import usage_parts
from middleware.server.visits import Visit

HEADING = Heading("chatcmpl-1", 1, "deepclaude")
USAGE = Usage(7, 9, parts=(("reasoner", Usage(2, 3)), ("answerer", None)))
PARTS = {
    "reasoner": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5},
    "answerer": None,
}
OPENED = Opened((), Upstream("u"))


def test_the_parts_stand_on_the_finish_chunk() -> None:
    frames = Chunks(HEADING).render([OPENED, TextDelta("a"), Finish("stop", USAGE)])
    finish = orjson.loads(frames.split(b"\n\n")[2].removeprefix(b"data: "))
    assert finish["x_usetool"] == {"usage": PARTS}


def test_without_parts_nothing_is_told() -> None:
    frames = Chunks(HEADING).render([OPENED, Finish("stop", Usage(1, 1))])
    assert b"x_usetool" not in frames
    assert usage_parts(None) == {}


def test_the_log_has_the_parts() -> None:
    visit = Visit("req_1", 0.0, finish=Finish("stop", USAGE))
    assert visit.line(1.0)["usage_parts"] == {"reasoner": [2, 3], "answerer": None}


def test_thoughts_under_another_name_are_folded_to_one_text() -> None:
    fold = Fold(HEADING)
    fold.add([OPENED, Aside("reasoning", "a"), Aside("reasoning", "b"), ReasoningDelta("c")])
    fold.add([Aside("annotations", [1]), Aside("annotations", [2]), Finish("stop")])
    message = orjson.loads(fold.body())["choices"][0]["message"]
    assert message["reasoning"] == "ab"
    assert message["annotations"] == [1, 2]
