"""The API server's client: everything else in `kube` calls it through the port `KubeApi`.

From the top: `port` (the eight calls and their errors), `client` (`connect` and the calls over
HTTP), `session` (credentials, retries, time limits), `http1` (connections), `access` (kubeconfig
or service account), `credentials` (the Authorization header), `limits` (how long, how much).
It imports nothing else of `kube`.
"""
