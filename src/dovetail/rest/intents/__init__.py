"""The door of hardware intents: documents of users, and what is done with them.

door         /v2, and the same without it
routes       made from the registry of kinds (`intents/documents/kinds.py`)
documents    handlers of collections and of single documents
actions      what is done with a group: approve, instantiate, plan, status ...
clouds       what is done with a logical cloud
body         a request's body: JSON, or a form with a file (multipart.py)
dialects     how answers look, and how errors do: ours, and EMCO's (emco.py)
"""
