"""What an upstream needs back and an OpenAI client does not send: thoughts, ids, order.

This is the theory of operation; each module then says its own part.

What it is for
--------------
Claude wants signed thinking blocks back, DeepSeek and Ollama their thoughts, a pipeline the thought
it had. OpenAI's clients send none of them, mint new ids for calls, and some (Dify) keep of several
calls of one tool the last one's arguments and result. So each answer is remembered under keys
that can be computed from any later request, and put back there. Without a memory, or with a broken
store, a request goes up as the client sent it, and the receipt says so (`recall_unavailable`).

What is remembered (`memory.Memory`)
------------------------------------
The text, the calls as the upstream made them, its reasoning or its own turn (`Finish.turn`, if the
answer is complete), a digest of the images before it, which memory came before it, and the results
of the round before it where that called one tool twice. An answer without thoughts is remembered
too where something tells it from others: else one that is alike would be found in its place.

Whose it is
-----------
Every key begins with scope (upstream, or pipeline), client (the digest of its key), model and kind.
So no client reaches another's memories, and no upstream gets another's thoughts. The kinds are
`asked` (the request may think) and `unasked`: an upstream that thinks though nobody asked is
`surprised` once, and only then are requests that ask for no thoughts looked up at all.

How a turn is found again (`fingerprint`, `remembered_history`)
---------------------------------------------------------------
Forward, a chain of digests runs over the messages, in a form that no client's rewriting changes:
text without thoughts in tags, arguments by their values, of calls of one name the last values,
no ids. Each assistant turn has two keys:
 - `content_key`: the chain before it and its own calls, or else its text;
 - `id_key`: the same with the ids of its calls, or of all calls before it if it has none.
Under both stands the identity (digest) of a memory, and under that the memory itself.

Backward, from the last turn on, at most 64 turns:
 1. the first turn whose key is known decides: by `id_key`, so that conversations that are alike do
    not meet; else by `content_key`, for clients that mint ids. Unasked thoughts: by ids only;
 2. its memory names the one before it, that the one before, and so on to the first. Where the
    client's ids say that an earlier turn is another's, they win;
 3. each memory on this line must fit its turn (`Turn.fits`: calls, text or none, images or none),
    and the results of rounds that call one tool twice those that were remembered;
 4. if one does not fit the whole line falls, and the next key or turn is tried.

What is put back (`Memory.restored`)
------------------------------------
Thoughts and turn, unless the client sends thoughts itself; the calls as they were made, and ids and
results that follow them. Never text the client left out or changed: the client's own word wins.
What was put back is in the receipt (`thoughts_restored`).

When it is written, and for how long
------------------------------------
Once an answer, before its `Finish` leaves: the next turn may come at once. One transaction writes
the memory, its two keys, and that what was used is young again. A failure is a note
(`recall_not_kept`), never an error. `store.Limits`: a memory lives 7 days from when it was last
needed, one of more than 4 MiB is not kept, beyond 256 MiB the longest unused go. `sqlite` is
shared by the workers of a machine, `redis` by all gateways, `MemoryStore` ends with the process.
`Store.rounds` is another of its kind, for what `server_tools` hides; each has half of the config's
`max_bytes`.
"""

from middleware.wrappers.recall.adapter import Recall
from middleware.wrappers.recall.deferral import DeferredStore
from middleware.wrappers.recall.fingerprint import digest
from middleware.wrappers.recall.ownership import foreign
from middleware.wrappers.recall.redis import RedisStore
from middleware.wrappers.recall.sqlite import SqliteStore
from middleware.wrappers.recall.store import Entry, Limits, MemoryStore, Store, StoreFailure

__all__ = (
    "DeferredStore",
    "Entry",
    "Limits",
    "MemoryStore",
    "Recall",
    "RedisStore",
    "SqliteStore",
    "Store",
    "StoreFailure",
    "digest",
    "foreign",
)
