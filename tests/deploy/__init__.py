"""Several gateways: what `deploy/fleet` and `deploy/kubernetes` say."""
