"""What is counted and told of all requests: metrics, traces.

`tally.py` counts from the first request on; `exposition.py` and `spans.py` load the packages that
write Prometheus' and OpenTelemetry's formats, where somebody asks for them.
"""
