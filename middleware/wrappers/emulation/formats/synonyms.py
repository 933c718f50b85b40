"""What models call the parts of a call that is written as JSON: one table for every reader."""

NAMES = (
    "name", "tool_name", "tool", "function", "action", "function_name", "recipient_name",
)  # fmt: skip
"""The tool."""
ARGUMENTS = (
    "arguments", "parameters", "args", "input", "action_input", "tool_input", "params",
    "tool_args", "kwargs",
)  # fmt: skip
"""Its arguments, also where they stand around the arguments once more."""
HOLDERS = ("function", "function_call")
"""What stands around both."""
BESIDE = ("type", "id", "tool_call_id", "thought", "tool_calls")
"""What a call may begin with that is neither."""
