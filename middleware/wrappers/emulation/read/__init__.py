"""The streaming reader. This is its theory of operation; each module then says its own part.

What it is
----------
`Reader` is an incremental parser: a model's text goes in, in any cuts, and events come out. All of
it is one coroutine (`Reader._run`, a generator) that reads a `Tape` and yields where the tape has
run out. Whoever is at work in it has the tape alone. What comes out depends on the text, never on
its cuts, and costs time in proportion to its length.

Readers do not emit. They tell `Output` what they met (text, a thought, a call, what may be one),
`Output` says when it leaves, and `CallJudge` what becomes of a call.

Which reader wins
-----------------
At the start of the answer, once:
 1. a thought (`thoughts`): marked by tags, or up to a closing tag within the first `hold`
    characters, if a template wrote the opening one;
 2. `to=` (Harmony without its header), or a line that is a tool's name (Functionary).
At the start of each line, the first that takes it:
 3. quoted text: a line behind `>`, or in a fence that is a listing. Nothing in it is a call;
 4. half a key or marker where the answer was cut by its limit: dropped;
 5. behind a call, a result the model invents: dropped, with all that follows;
 6. lines of our own prompt (`echoes`), where the model was given it: dropped;
 7. a block of our own language (`block`): `USE_TOOL`, `TOOL_NAME:` or `NO_TOOL`;
 8. a fence (`quotation`): calls and nothing else in it are read, all else makes it a listing;
 9. bare calls (`bare_calls`): JSON, JSON below `Action:`, ReAct, Python; not in inline code.
Anywhere in a line that is not quoted:
10. tokens of trained formats (`format_reader`, `body`; the table is `formats/table.py`). The end
    mark of a format outranks the structure of the value before it.
What nobody takes is text. `ReadRules` leaves tiers out: without `trained` only 3 to 8 are left,
without `bare` (the client wants JSON) no 9 and no Functionary.

When a call that was read is a call
-----------------------------------
- Read on a line or in a fence, it is on trial (`Attempt`) until what stands around it is known:
  prose that goes on behind it, inline code, a fence with other words make it text as written.
- Marked calls and ReAct's count at once then (`Output.accept`). Bare JSON and Python, and a fence
  of trained formats, are a `Candidate`: the end of the answer decides (`Output.finish`). All count
  where nothing else was said. Beside text, a bare one counts if it is the only one and fits its
  schema (`prose`), those in a fence if no text follows them. Where a call was demanded (`forced`)
  all count.
- `CallJudge` passes a good call on. A faulty one stays open, with all calls behind it: the order
  of calls is the model's. `TextAnswer` asks again for those.

What may be held back, and who lets it go
-----------------------------------------
| what                                         | where              | until                      |
| -------------------------------------------- | ------------------ | -------------------------- |
| all, where a call is demanded                | `TextAnswer`       | the first call             |
| the first `hold` characters                  | tape               | `thoughts` finds no end    |
| an end that may become a token (`held_from`) | tape               | the next characters tell   |
| a line's beginning, up to 96 characters      | tape               | `opening` and its like say |
| a value, or all up to an end mark            | the reader at work | its end, or a barrier      |
| a call in a thought, up to 65,536 characters | `thoughts`         | the thought ends           |
| white space, what stands between two calls   | `Output._held`     | `say` takes it along; of   |
|                                              |                    | that at a call one is kept |
| all of a line or fence that is on trial      | `Attempt.steps`    | `commit` or `forget`       |
| a candidate and all behind it                | `Output._queue`    | `finish`                   |
| a faulty call and all calls behind it        | `CallJudge.open`   | `TextAnswer.end`           |
The first row holds whatever the others say; nothing else waits. In plain prose a text leaves with
the piece it came in; where nothing at all is held, a piece without brackets and line ends does not
even touch the tape (`Reader._free`).

Who writes what
---------------
| state                                        | written by                                      |
| -------------------------------------------- | ----------------------------------------------- |
| `Tape.text`, `Tape.ended`                    | `Reader.feed`, `Reader.close`                   |
| `Tape.at`                                    | the reader at work: `take`, `pull`, `back`      |
| `Output`: `context`, `spoken`, `behind_call` | itself, in what readers tell it (`say`, `hold`, |
| (what was said last), `fence_line`,          | `accept`, `propose`, …). `attempt`, `commit`    |
| `_nesting`, `_held`, `_words`, `_queue`,     | and `forget` are `Quotation`'s; `drain`,        |
| `_events`                                    | `finish` and `pass_plain` are `Reader`'s        |
| `Attempt`                                    | `Output`; `Quotation` decides by it             |
| `CallJudge`: `made`, `open`, `dropped`,      | itself. Readers call `drop` (cut by the limit)  |
| `notes`                                      | and `note`; `Reader.close` sets `reason`        |
| `Reader`: `_line_start`, `_verbatim`, `_free`| `Reader`, between two readers                   |
"""
