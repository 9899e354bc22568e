"""Commands that ask a server: candidates, explain, whatif, claim, release, decisions, usage."""
