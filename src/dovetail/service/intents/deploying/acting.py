"""Action controllers of a group, called around a deployment: plans have them edit objects last.

    plan        they edit the objects of the picked clusters, one after the other
    recorded    what they work on is kept, and they are told that objects are about to be applied
    ended       they are told, and what they worked on is removed

Only the first can refuse: what happens later is told to them, and nobody waits for their consent.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import structlog

from dovetail.core.errors import DovetailError
from dovetail.intents.controllers import ControllerCall
from dovetail.intents.group import DeploymentGroup, ManifestObject
from dovetail.intents.names import APP_LABEL, DEPLOYMENT_LABEL, ClusterName, label_value
from dovetail.service.intents.controllers.contracts.emco import EventType
from dovetail.service.intents.controllers.emco_actions import ActionsRefused, EmcoActions
from dovetail.service.intents.ports import Infeasible

LOG = structlog.get_logger("dovetail.controllers")

AppObjects = dict[str, dict[ClusterName, Sequence[ManifestObject]]]
"""By app and cluster."""


class EditedObjects(msgspec.Struct, frozen=True):
    objects: AppObjects
    context: str = ""
    """What the controllers worked on; empty if there are none."""


class ActionControllers:
    def __init__(self, emco: EmcoActions | None) -> None:
        """None: nothing is set up for controllers of EMCO."""
        self._emco = emco

    async def edited(
        self,
        group: DeploymentGroup,
        calls: Sequence[ControllerCall],
        objects: AppObjects,
        *,
        deployment: str,
        update_from: str = "",
    ) -> EditedObjects:
        """Raises Infeasible if one of them does not do its part."""
        if not calls:
            return EditedObjects(objects)
        names = ", ".join(each.name for each in calls)
        if self._emco is None:
            raise Infeasible(f"action controllers {names}: no etcd is set up to work on")
        try:
            done = await self._emco.update(group, objects, calls, update_from)
        except ActionsRefused as error:
            failure = error.failure
            reason = {
                "controller": failure.controller,
                "token": failure.token,
                "words": failure.words,
            }
            raise Infeasible(str(error), [reason]) from error
        except DovetailError as error:
            raise Infeasible(f"action controllers {names}: {error}") from error
        found: AppObjects = {
            app: {
                cluster: [labelled(each, deployment, app) for each in manifests]
                for cluster, manifests in of.items()
            }
            for app, of in done.placed.items()
        }
        return EditedObjects(found, done.context)

    async def recorded(
        self, context: str, calls: Sequence[ControllerCall], *, is_update: bool
    ) -> None:
        if self._emco is None or not context:
            return
        event = EventType.UPDATE if is_update else EventType.INSTANTIATE
        try:
            await self._emco.keep(context)
            await self._emco.post_event(context, event, calls)
        except DovetailError as error:
            LOG.warning("action controllers not told", context=context, error=str(error))

    async def ended(self, context: str, calls: Sequence[ControllerCall]) -> None:
        if self._emco is None or not context:
            return
        try:
            await self._emco.terminate(context, calls)
            await self._emco.post_event(context, EventType.TERMINATE, calls)
            await self._emco.remove(context)
        except DovetailError as error:
            LOG.warning("action controllers not told", context=context, error=str(error))

    async def discarded(self, context: str) -> None:
        """Nothing came of the plan."""
        if self._emco is None or not context:
            return
        try:
            await self._emco.remove(context)
        except DovetailError as error:
            LOG.warning("context left to its lease", context=context, error=str(error))


def labelled(manifest: ManifestObject, deployment: str, app: str) -> ManifestObject:
    """As all objects of a deployment are: one that a controller added is its own, too."""
    meta = dict(manifest.get("metadata") or {})
    own = {DEPLOYMENT_LABEL: label_value(deployment), APP_LABEL: label_value(app)}
    meta["labels"] = {**(meta.get("labels") or {}), **own}
    return {**manifest, "metadata": meta}
