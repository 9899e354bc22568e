"""The extender: kube-scheduler keeps deciding, and asks here about devices."""
