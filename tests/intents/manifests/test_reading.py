"""Text to objects: what kubectl would read, and what nobody should."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dovetail.intents.manifests import reading
from dovetail.intents.manifests.errors import BadManifest
from dovetail.intents.manifests.reading import documents_of, objects_of

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"


def read(text: str | bytes) -> list[dict[str, Any]]:
    return [dict(each) for each in objects_of(text, "web.yaml")]


def value(text: str) -> Any:
    (document,) = documents_of(f"value: {text}", "values.yaml")
    return document["value"]


def test_documents_of_a_file_in_their_order() -> None:
    text = f"# rendered\n---\n{WEB}\n---\n# nothing\n---\n---\n{MAP}...\n"
    assert [each["kind"] for each in read(text)] == ["Deployment", "ConfigMap"]


def test_json_is_read_too() -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "x": 1e3}
    assert read(json.dumps(document)) == [document]
    assert read(json.dumps(document).encode("utf-8-sig")) == [document]


def test_yaml_that_begins_like_json() -> None:
    assert read("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")[0]["kind"] == "ConfigMap"


def test_lists_are_their_items() -> None:
    text = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
                {
                    "apiVersion": "apps/v1",
                    "kind": "DeploymentList",
                    "items": [{"metadata": {"name": "b"}}],
                },
            ],
        }
    )
    found = [(each["apiVersion"], each["kind"], each["metadata"]["name"]) for each in read(text)]
    assert found == [("v1", "ConfigMap", "a"), ("apps/v1", "Deployment", "b")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("12:30:45", "12:30:45"),
        ("10:20", "10:20"),
        ("1e3", 1000.0),
        ("0x10", 16),
        ("010", 8),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("500m", "500m"),
        ("v1", "v1"),
        ("yes", True),
        ("off", False),
        ("y", "y"),
        ("=", "="),
        ("", None),
        ("~", None),
        ("'yes'", "yes"),
        ("{80: http, true: x}", {"80": "http", "true": "x"}),
        ("{<<: {a: 1}, b: 2}", {"a": 1, "b": 2}),
    ],
)
def test_scalars_are_read_as_kubectl_reads_them(text: str, expected: object) -> None:
    assert value(text) == expected


def test_aliases_are_copies() -> None:
    (document,) = documents_of("a: &x {n: 1}\nb: *x\nc: {<<: *x, m: 2}", "values.yaml")
    assert document == {"a": {"n": 1}, "b": {"n": 1}, "c": {"n": 1, "m": 2}}
    assert document["a"] is not document["b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Pod\nmetadata: {name: a}", "web.yaml, document 1: apiVersion: is missing"),
        ("apiVersion: v1\nkind: 3\nmetadata: {name: a}", "kind: text is expected"),
        ("apiVersion: v1\nkind: Pod", "metadata: an object with a name is expected"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}", "metadata.name: is missing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 3}", "metadata.name: text is expected"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}", "generateName is not enough"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: [b]}", "metadata.labels: a map"),
        ("- 1", "document 1: an object is expected, not a list"),
        ("just words", "document 1: an object is expected, not a str"),
        (f"{WEB}\n---\nkind: x", "document 2: apiVersion"),
        (f"{WEB}\n---\n{WEB}", "web.yaml: Deployment web is there twice"),
        ("a: [1", "web.yaml: while parsing a flow sequence"),
        ("a: !!python/object/apply:os.system [id]", "could not determine a constructor"),
        ("a: !!binary aGk=", "a: a bytes is no JSON"),
        ("? [a, b]\n: c", "found unhashable key|a key is text"),
        ("~: 1", "a key is text, not None"),
        ("a: *nobody", "alias \\*nobody has no anchor|undefined alias"),
        ("a: &a [*a]", r"line 1: alias \*a has no anchor before it"),
        (f"a: {'9' * 5000}", "Exceeds the limit"),
        (b"a: \xff", "byte 3 is no UTF-8"),
        ("a: \x00", "special characters are not allowed|control characters"),
        ('{"items": 3, "kind": "List", "apiVersion": "v1"}', "metadata: an object with a name"),
        ('{"items": [3], "kind": "List", "apiVersion": "v1"}', r"items\[0\]: an object is exp"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str | bytes, words: str) -> None:
    with pytest.raises(BadManifest, match=words):
        read(text)


def test_a_bomb_of_aliases_is_not_set_off() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 40)]
    with pytest.raises(BadManifest, match="more than 500000 values, aliases expanded"):
        read("\n".join(lines))


def test_a_bomb_of_merges_is_not_set_off() -> None:
    lines = ["a0: &a0 {k: v}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 30)]
    with pytest.raises(BadManifest, match="aliases expanded"):
        read("\n".join(lines))


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, '{"a":' * 100_000, "{a: " * 5000])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(BadManifest, match=r"nested more than 100 deep|nesting|[Dd]epth"):
        read(text)


def test_deep_json_is_refused() -> None:
    with pytest.raises(BadManifest, match="nested more than 100 deep"):
        read('{"a":' * 200 + "1" + "}" * 200)


def test_huge_texts_are_not_even_looked_at() -> None:
    with pytest.raises(BadManifest, match="at most 8388608 are read"):
        read(b" " * (reading.MOST_BYTES + 1))


def test_too_many_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_OBJECTS", 1)
    with pytest.raises(BadManifest, match="more than 1 objects"):
        read(f"{WEB}\n---\n{MAP}")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abz/.-", max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON)
def test_what_was_written_is_what_is_read(extra: object) -> None:
    """By a writer of JSON and by one of YAML, unknown fields included."""
    document = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, "extra": extra}
    assert read(json.dumps(document)) == [document]
    assert read(yaml.safe_dump(document, allow_unicode=True)) == [document]


@given(st.text(max_size=200))
def test_any_text_is_objects_or_a_bad_manifest(text: str) -> None:
    try:
        read(text)
    except BadManifest as error:
        assert str(error).startswith("web.yaml")  # noqa: PT017 - both ways are fine
