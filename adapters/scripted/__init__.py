"""A model that answers by rules, and says so: for demos, tests and users' own tests."""

from adapters.kind import Kind, Service
from adapters.scripted.model import Options, connect

KIND = Kind(
    name="scripted",
    about="No model: it answers by rules, for demos and tests.",
    connect=connect,
    options=Options,
    needs_address=False,
    free=True,
    remembers=False,
    services={"mock": Service("scripted", aliases=("fake", "test", "rules"))},
)
