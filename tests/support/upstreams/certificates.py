"""Certificates that nobody trusts but who is told to."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


def certificate(folder: Path, names: str = "DNS:claude.test") -> tuple[Path, ssl.SSLContext]:
    """One for these names: what trusts it, and what a server shows it by."""
    key, chain = folder / "key.pem", folder / "chain.pem"
    extensions = (f"subjectAltName={names}", "keyUsage=critical,digitalSignature,keyCertSign")
    command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=claude.test"]
    command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += [word for extension in extensions for word in ("-addext", extension)]
    subprocess.run([*command, "-keyout", key, "-out", chain], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    return chain, context
