"""gRPC without generated code: messages by field number (`codec`), calls of them (`rpc`).

The node agent speaks it on sockets of the node, `service/intents/controllers` with placement
controllers of others.
"""
