"""From Kubernetes' DeviceClass to a device class, as far as classes can say what its CEL says.

Where CEL fails because an attribute is missing, the class does not select the device: a class never
fails. So an attribute that is compared has to be there, whether the CEL looks first or not.
"""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.core.selectors.selector import Expression, Operator
from dovetail.devices.classes.cel.syntax import BadCel, parse
from dovetail.devices.classes.cel.tokens import LONGEST
from dovetail.devices.classes.documents import DeviceClass, Problem, read, write
from dovetail.devices.classes.dra.atoms import Atom
from dovetail.devices.classes.dra.branches import Branch, both, branches_of
from dovetail.devices.classes.dra.convention import Untranslatable

EVERYTHING = Expression("Kind", Operator.EXISTS)
PERMIT_ABSENCE = frozenset((Operator.NOT_IN, Operator.DOES_NOT_EXIST))
FIELDS = frozenset(("selectors",))


def from_device_class(document: Mapping[str, object]) -> DeviceClass:
    """Raises Untranslatable, or BadClass for a name that no device class of Dovetail may have."""
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str):
        raise Untranslatable("", [Problem("metadata.name", "is missing")])
    problems = [*_header(document)]
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        raise Untranslatable(name, [*problems, Problem("spec", "is missing")])
    for field in spec:
        if field not in FIELDS and spec[field]:
            problems.append(Problem(f"spec.{field}", "resource classes have nothing like it"))
    branches = _read_selectors(spec.get("selectors"), problems)
    if problems:
        raise Untranslatable(name, problems)
    cls = DeviceClass(name, tuple(branches))
    return read(name, write(cls))


def _header(document: Mapping[str, object]) -> list[Problem]:
    found = []
    if document.get("kind") != "DeviceClass":
        found.append(Problem("kind", f"{document.get('kind')!r}: DeviceClass is expected"))
    if not str(document.get("apiVersion")).startswith("resource.k8s.io/"):
        found.append(Problem("apiVersion", "resource.k8s.io/v1 is expected"))
    return found


def _read_selectors(given: object, problems: list[Problem]) -> list[tuple[Expression, ...]]:
    """All of the selectors have to be met; without any, all devices are selected."""
    if given is not None and not isinstance(given, list):
        problems.append(Problem("spec.selectors", "a list is expected"))
        return []
    branches: list[Branch] = [()]
    for index, selector in enumerate(given or ()):
        path = f"spec.selectors[{index}].cel.expression"
        text = _expression(selector)
        if text is None:
            problems.append(Problem(path, f"text of at most {LONGEST} characters is expected"))
            continue
        try:
            node = parse(text)
            branches = both(branches, branches_of(node, True), node.at)
            for branch in branches:
                _expressions(branch)
        except BadCel as error:
            problems.append(Problem(path, str(error)))
    return [] if problems else [_expressions(branch) for branch in branches]


def _expression(selector: object) -> str | None:
    cel = selector.get("cel") if isinstance(selector, Mapping) else None
    text = cel.get("expression") if isinstance(cel, Mapping) else None
    return text if isinstance(text, str) else None


def _expressions(branch: Branch) -> tuple[Expression, ...]:
    found = [each for atom in branch for each in _said(atom, branch)]
    return tuple(dict.fromkeys(found)) or (EVERYTHING,)


def _said(atom: Atom, branch: Branch) -> tuple[Expression, ...]:
    if atom.expression is not None:
        return (atom.expression,)
    place = atom.place
    implied = any(
        other.expression is not None
        and other.expression.operator not in PERMIT_ABSENCE
        and (other.place == place or (other.place.key == place.key and _any_value(atom)))
        for other in branch
    )
    if implied:
        return ()
    if _any_value(atom):
        return (Expression(place.key, Operator.EXISTS),)
    message = f"that {place.key} is {place.dimension}, whichever, cannot be said by a class"
    raise BadCel(atom.at, message)


def _any_value(atom: Atom) -> bool:
    """Being there is just being there: any value of ours is text, and drivers publish one kind."""
    return atom.place.dimension is None or not atom.place.ours
