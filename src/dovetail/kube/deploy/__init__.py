"""Deploys objects of hardware intents on registered clusters: any kind, applied, watched, removed.

`service/intents` decides what is to be where; its port to clusters is `port.py` here.
"""
