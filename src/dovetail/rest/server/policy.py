"""Policy: what a caller may do, in named sets of rules; the application asks one per action.

`legacy`: role admin may do everything. `secure`: Placement's present defaults, role admin or
service, service alone to reshape, and a reader of a project sees its usages and its intents; admin
alone registers clusters and controllers. `open`: everybody may do everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dovetail.rest.auth.identity import Identity

Rule = Callable[[Identity, str | None], bool]
"""Caller and the project asked about, if any."""

RESHAPE = "placement:reshaper:reshape"
USAGES = "placement:usages"
FLEET = "dovetail:fleet:load"
DUMP = "dovetail:fleet:dump"
CLAIM = "dovetail:claim"
EXPLAIN = "dovetail:explain"
HOLDERS = "placement:resource_providers:allocations:list"
"""Who holds what: Placement's own action, which also decides who is told whom to move."""
RELEASE = "placement:allocations:delete"
MAP = "dovetail:map"
NAMES = "dovetail:names"
TOTALS = "dovetail:usage"
AUDIT = "dovetail:audit:show"
HEAL = "dovetail:audit:heal"
SHOW_ATTRIBUTES = "dovetail:attributes:show"
SET_ATTRIBUTES = "dovetail:attributes:update"
SHOW_CLASSES = "dovetail:classes:show"
SET_CLASSES = "dovetail:classes:update"
DEVICES = "dovetail:devices:list"
LIST_PROJECTS = "intents:projects:list"
READ_INTENTS = "intents:read"
WRITE_INTENTS = "intents:write"
DEPLOY_INTENTS = "intents:deploy"
READ_CLUSTERS = "intents:clusters:read"
WRITE_CLUSTERS = "intents:clusters:write"
READ_CONTROLLERS = "intents:controllers:read"
WRITE_CONTROLLERS = "intents:controllers:write"


def everybody(_caller: Identity, _project: str | None) -> bool:
    return True


def has_any(caller: Identity, *roles: str) -> bool:
    """Whoever administers a domain of Keystone does not administer the fleet: as in Placement, only
    roles in a project count."""
    return not caller.wider_scope and not caller.roles.isdisjoint(roles)


def admin(caller: Identity, _project: str | None) -> bool:
    return has_any(caller, "admin")


def admin_or_service(caller: Identity, _project: str | None) -> bool:
    return has_any(caller, "admin", "service")


def service(caller: Identity, _project: str | None) -> bool:
    return has_any(caller, "service")


def also_reader_of_project(caller: Identity, project: str | None) -> bool:
    reads = project is not None and caller.project == project and has_any(caller, "reader")
    return reads or admin_or_service(caller, project)


class RuleSet:
    def __init__(self, default: Rule, exceptions: Mapping[str, Rule] | None = None) -> None:
        self._default, self._exceptions = default, dict(exceptions or {})

    def allows(self, action: str, caller: Identity, project: str | None = None) -> bool:
        return self._exceptions.get(action, self._default)(caller, project)


RULE_SETS: Mapping[str, RuleSet] = {
    "legacy": RuleSet(admin),
    "secure": RuleSet(
        admin_or_service,
        {
            RESHAPE: service,
            USAGES: also_reader_of_project,
            FLEET: admin,
            HEAL: admin,
            READ_INTENTS: also_reader_of_project,
            WRITE_CLUSTERS: admin,
            WRITE_CONTROLLERS: admin,
        },
    ),
    "open": RuleSet(everybody),
}
