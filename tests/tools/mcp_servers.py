"""A small MCP server to test with, over stdio or HTTP; it can be told to misbehave."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TOOLS = """
import json, os, subprocess, sys, time, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADD = {"type": "object", "title": "T", "required": ["a"], "properties": {"a": {"type": "integer"}}}
TOOLS = {"add": ADD} | {name: {"type": "object"} for name in
         ("crash", "env", "fail", "hang", "flood", "pids")}

def text(words, **more): return {"content": [{"type": "text", "text": words}], **more}

def result(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"}}
    if method == "tools/list":
        at = int(params.get("cursor") or 0)
        page = [{"name": n, "inputSchema": s} for n, s in [*TOOLS.items()][at:at + 2]]
        return {"tools": page, **({"nextCursor": str(at + 2)} if at + 2 < len(TOOLS) else {})}
    name, given = params["name"], params.get("arguments") or {}
    if name == "crash": os._exit(1)
    if name == "hang": time.sleep(60)
    if name == "flood": return text("x" * (17 << 20))
    if name == "pids": return text(f"{os.getpid()} {subprocess.Popen(['sleep', '60']).pid}")
    if name == "env": return text(" ".join(sorted(os.environ)))
    if name == "fail": return text("it broke", isError=True)
    return text(str(given["a"] + 1))

def answer(asked):
    found = result(asked["method"], asked.get("params") or {})
    return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found})
"""
_LINES = """
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print("no JSON")
        print(answer(asked), flush=True)
"""
_WEB = """
SESSIONS = set()

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        session = self.headers.get("mcp-session-id") or str(uuid.uuid4())
        if asked["method"] == "initialize": SESSIONS.add(session)
        elif session not in SESSIONS: return self.say(404)
        self.say(200, answer(asked), session) if "id" in asked else self.say(202)
    def do_GET(self): self.say(405)
    def do_DELETE(self): self.say(200)
    def say(self, status, body="", session=""):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if session: self.send_header("mcp-session-id", session)
        self.end_headers()
        self.wfile.write(body.encode())
    def log_message(self, *_): pass

server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
"""


def stdio_table(folder: Path, more: str = "") -> str:
    file = folder / "server.py"
    file.write_text(_TOOLS + _LINES, "utf-8")
    return f'[tools.raw]\nkind = "mcp"\ncommand = ["{sys.executable}", "{file}"]\n{more}\n'


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def served(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The server over HTTP, killed at the end if it was not before."""
    file = folder / "web.py"
    file.write_text(_TOOLS + _WEB, "utf-8")
    command = [sys.executable, str(file), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process
        finally:
            process.kill()
