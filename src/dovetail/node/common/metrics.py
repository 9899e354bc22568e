"""Every metric of the agent, in one place. Labels take few values, known beforehand."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

PLUGIN_CALLS = Histogram(
    "dovetail_agent_plugin_call_seconds",
    "Calls of plugins, by method and result: ok, down, timeout, refused or garbage.",
    ("resource", "method", "result"),
    buckets=SECONDS,
    registry=REGISTRY,
)
PLUGINS_UP = Gauge(
    "dovetail_agent_plugin_up",
    "Whether the plugin of a resource is there.",
    ("resource",),
    registry=REGISTRY,
)
ADMISSIONS = Counter(
    "dovetail_agent_admissions_total",
    "Pods and late containers admitted or not, by reason.",
    ("result", "reason"),
    registry=REGISTRY,
)
ADMISSION_SECONDS = Histogram(
    "dovetail_agent_admission_seconds",
    "From the question of the runtime to the answer.",
    buckets=SECONDS,
    registry=REGISTRY,
)
UPDATES = Counter(
    "dovetail_agent_container_updates_total",
    "Updates of running containers: applied, refused, or put off after a refusal.",
    ("result",),
    registry=REGISTRY,
)
DRIFT = Counter(
    "dovetail_agent_drift_total",
    "Containers found with other values than were applied last.",
    registry=REGISTRY,
)
RECONCILE_SECONDS = Histogram(
    "dovetail_agent_reconcile_seconds",
    "One look at all plugins and containers.",
    buckets=SECONDS,
    registry=REGISTRY,
)
PODS = Gauge("dovetail_agent_pods", "Pods with allocations.", registry=REGISTRY)
WAITING_REMOVALS = Gauge(
    "dovetail_agent_waiting_removals",
    "Pods that went and of which a plugin has not been told yet.",
    registry=REGISTRY,
)
PROXIED = Histogram(
    "dovetail_agent_proxied_call_seconds",
    "Calls that went through to the runtime, by kind: passed, injected or refused.",
    ("kind",),
    buckets=SECONDS,
    registry=REGISTRY,
)
NODE_RESOURCES = Gauge(
    "dovetail_agent_node_resource",
    "What the node has of a resource that plugins manage, by kind: capacity or allocatable.",
    ("resource", "kind"),
    registry=REGISTRY,
)
