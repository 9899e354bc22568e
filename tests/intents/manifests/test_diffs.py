"""Diffs that people read in plans."""

from __future__ import annotations

import copy
from typing import Any

from dovetail.intents.manifests.diffs import diff_of, yaml_of
from tests.intents.manifests.charts import container, workload


def test_a_change_with_what_is_around_it() -> None:
    before = workload("Pod", "web", container(limits={"cpu": "1"}))
    after = copy.deepcopy(before)
    after["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "2"
    assert diff_of([before], [after]) == (
        "--- Pod web\n"
        "+++ Pod web\n"
        "@@ -10,4 +10,4 @@\n"
        "     image: registry.example.com/main:1\n"
        "     resources:\n"
        "       limits:\n"
        "-        cpu: '1'\n"
        "+        cpu: '2'\n"
    )


def test_objects_that_come_and_go() -> None:
    one, two = workload("Pod", "one"), workload("Pod", "two")
    two["metadata"]["namespace"] = "edge"
    found = diff_of([one], [two])
    assert "--- (none)\n+++ Pod edge/two\n" in found
    assert "--- Pod one\n+++ (none)\n" in found


def test_nothing_where_nothing_changed() -> None:
    assert diff_of([workload("Pod")], [workload("Pod")]) == ""


def secret(value: str, **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "keys", **meta},
        "data": {"token": value},
        "stringData": {"password": value},
    }


def test_secrets_are_never_shown() -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "other": "shown"}
    found = diff_of([secret("hunter2")], [secret("hunter2", annotations=applied)])
    assert "hunter2" not in found
    assert "other: shown" in found
    assert "hunter2" not in yaml_of(secret("hunter2"))


def test_secrets_that_differ_are_told_all_the_same() -> None:
    found = diff_of([secret("hunter1")], [secret("hunter2")])
    assert "hunter" not in found
    assert "+++ Secret keys\n(values that are hidden differ)\n" in found


def test_values_that_are_there_twice_are_written_twice() -> None:
    shared = {"a": "b"}
    text = yaml_of({"kind": "ConfigMap", "one": shared, "two": shared})
    assert text == "kind: ConfigMap\none:\n  a: b\ntwo:\n  a: b\n"
