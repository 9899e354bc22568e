"""Templates of emcoctl files, as Go fills them."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.cli.intents.templates import BadTemplate, filled

VALUES: dict[str, Any] = {
    "Project": "p1",
    "Port": 9031,
    "On": True,
    "Off": False,
    "Cluster": {"Name": "c1"},
    "Clusters": ["c1", "c2"],
    "Labels": {"b": "2", "a": "1"},
    "Empty": [],
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("anchor: projects/{{.Project}}/apps", "anchor: projects/p1/apps"),
        ("port: {{ .Port }}", "port: 9031"),
        ("on: {{.On}}", "on: true"),
        ("{{.Cluster.Name}}", "c1"),
        ("{{index .Clusters 1}}", "c2"),
        ("a {{- /* gone */ -}} b", "ab"),
        ("a {{- .Project -}} b", "ap1b"),
        ("{{range .Clusters}}<{{.}}>{{end}}", "<c1><c2>"),
        ("{{range $i, $c := .Clusters}}{{$i}}={{$c}} {{end}}", "0=c1 1=c2 "),
        ("{{range $k, $v := .Labels}}{{$k}}={{$v}} {{end}}", "a=1 b=2 "),
        ("{{range .Clusters}}{{$.Project}}+{{.}} {{end}}", "p1+c1 p1+c2 "),
        ("{{range .Empty}}x{{else}}none{{end}}", "none"),
        ("{{if .Off}}a{{else if eq .Project `p1`}}b{{else}}c{{end}}", "b"),
        ("{{if .Missing}}a{{end}}b", "b"),
        ('{{if and .On (not .Off) (ne .Project "x")}}yes{{end}}', "yes"),
        ("{{if or .Off .On}}yes{{end}} {{len .Clusters}}", "yes 2"),
        ("{{quote .Project}}", '"p1"'),
        ("no template at all: {}", "no template at all: {}"),
    ],
)
def test_a_template_is_filled(template: str, text: str) -> None:
    assert filled(template, VALUES) == text


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        ("a\n{{.Nothing}}", "line 2: there is no value for .Nothing"),
        ("{{.Cluster.Nothing}}", "line 1: there is no value for .Cluster.Nothing"),
        ("{{if .On}}x", "line 1: {{end}} is missing"),
        ("x{{end}}", "line 1: {{end}} ends nothing"),
        ("{{upper .Project}}", "line 1: upper is neither a value (.Name) nor a function"),
        ("{{range .Project}}{{end}}", "line 1: range over .Project, which is no list"),
        ("{{index .Clusters 7}}", "line 1: index .Clusters 7: IndexError"),
        ("{{}}", "line 1: an action that says nothing"),
        ("{{eq (.On}}", "line 1: a bracket is not closed"),
    ],
)
def test_what_cannot_be_filled_is_told_with_its_line(template: str, complaint: str) -> None:
    with pytest.raises(BadTemplate) as refused:
        filled(template, VALUES)
    assert str(refused.value).startswith(complaint)
