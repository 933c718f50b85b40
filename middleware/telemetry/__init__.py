"""What machines are told of requests: metrics for Prometheus, traces for OpenTelemetry."""
