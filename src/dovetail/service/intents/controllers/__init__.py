"""Placement controllers, all asked at once; action controllers, one after the other; their SDK.

fan_out          asks built-in and external ones, each with its deadline and policy
external         one of ours, over `dovetail.intents.v1`
translation      its answers, checked; the same words for answers that are kept
emco             EMCO's placement controllers, over their own contracts
emco_actions     EMCO's action controllers
app_context      what those act on: an AppContext in etcd, in EMCO's layout
cluster_events   EMCO's controllers that are told of clusters
announcing       when: as documents of clusters are kept and dropped
sdk              what a controller is made of
"""
