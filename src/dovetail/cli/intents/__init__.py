"""`dovetail intents`: hardware intents over many clusters."""
