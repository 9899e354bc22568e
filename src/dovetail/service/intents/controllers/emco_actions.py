"""EMCO's action controllers: they edit the objects of chosen clusters, in an AppContext that stays.

`service/intents` has them called when a group is instantiated or updated, after all that Dovetail
edits itself; keeps the AppContext once the deployment is recorded (before, it has a lease, so that
nothing is left of a plan that nobody carries out); tells them when objects are applied or gone; and
has it removed in the end. They are called one after the other, as with EMCO: each sees what those
before it did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import structlog

from dovetail.core.errors import DovetailError
from dovetail.intents.controllers import CallTerms, ControllerCall, FailurePolicy, terms_of
from dovetail.intents.group import DeploymentGroup, ManifestObject
from dovetail.intents.names import ClusterName
from dovetail.service.intents.controllers.app_context import (
    AppContext,
    ContextCluster,
    by_resource_name,
)
from dovetail.service.intents.controllers.contracts.emco import (
    POST_EVENT,
    TERMINATE,
    UPDATE,
    ContextUpdateRequest,
    EventType,
    PostEventRequest,
    TerminateRequest,
)
from dovetail.service.intents.controllers.etcd_store import etcd_store
from dovetail.service.intents.controllers.external import endpoint_of
from dovetail.service.intents.controllers.fan_out import LATE, ControllerFailure
from dovetail.service.intents.controllers.metrics import CALLS
from dovetail.service.intents.controllers.translation import BadAnswer
from dovetail.telemetry.tracing import TRACING
from dovetail.wire.client import (
    CallFailure,
    EndpointError,
    GrpcEndpoint,
    TlsIdentity,
    ask,
    connected,
)
from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method

A = TypeVar("A", bound=Message)
LOG = structlog.get_logger("dovetail.controllers")

STORE_SECONDS, REMOVAL_SECONDS = 30.0, 2.0
"""For etcd, beside the deadlines of controllers."""
LEASE_SECONDS = 900
"""Of a context whose deployment is not recorded yet."""

PlacedObjects = Mapping[str, Mapping[ClusterName, Sequence[ManifestObject]]]
"""By app and cluster."""


class ActionsRefused(DovetailError):
    """An action controller did not do its part; what it did is thrown away."""

    def __init__(self, failure: ControllerFailure) -> None:
        self.failure = failure
        super().__init__(failure.words)


class ActedObjects(msgspec.Struct, frozen=True, kw_only=True):
    """What action controllers made of objects."""

    context: str
    """The id of the AppContext, for all that comes later."""
    placed: PlacedObjects
    failures: tuple[ControllerFailure, ...] = ()
    """Of controllers that are ignored, by their policy."""


class EmcoActions:
    """Calls action controllers."""

    def __init__(
        self, etcd: GrpcEndpoint, identity: TlsIdentity | None, terms: CallTerms | None = None
    ) -> None:
        self._etcd, self._identity, self._terms = etcd, identity, terms or CallTerms()

    async def update(
        self,
        group: DeploymentGroup,
        placed: PlacedObjects,
        actions: Iterable[ControllerCall],
        update_from: str = "",
    ) -> ActedObjects:
        """The objects as the controllers leave them; `update_from` is the context of what runs.

        Raises ActionsRefused; BadAnswer and Malformed for what makes no sense; EndpointError if
        etcd does not answer. Then nothing is left of it.
        """
        context = AppContext()
        try:
            async with etcd_store(self._etcd, STORE_SECONDS) as store:
                lease = await store.grant(LEASE_SECONDS)
                await store.write(context.entries(group, numbered(placed)), lease)
            failures = []
            for call in actions:
                question = ContextUpdateRequest(
                    app_context=context.identifier,
                    intent_name=call.intent,
                    update_from_app_context=update_from,
                )
                failure = await self._called(call, UPDATE, question, updated_words)
                if failure is not None and failure.is_refusal:
                    raise ActionsRefused(failure)
                failures += [failure] if failure else []
            async with etcd_store(self._etcd, STORE_SECONDS) as store:
                values = await store.values(context.apps)
            return ActedObjects(
                context=context.identifier,
                placed=left_objects(context, values, placed),
                failures=tuple(failures),
            )
        except BaseException:
            await self._try_to_remove(context)
            raise

    async def keep(self, context: str) -> None:
        """For as long as its deployment: until `remove`. Can be repeated. Raises EndpointError."""
        async with etcd_store(self._etcd, STORE_SECONDS) as store:
            await store.keep(AppContext(context).root)

    async def post_event(
        self, context: str, event: EventType, actions: Iterable[ControllerCall]
    ) -> tuple[ControllerFailure, ...]:
        """Tell that objects were applied, updated or removed; whom that did not reach."""
        question = PostEventRequest(app_context=context, event_type=event)
        found = [await self._called(call, POST_EVENT, question, event_words) for call in actions]
        return tuple(each for each in found if each)

    async def terminate(
        self, context: str, actions: Iterable[ControllerCall]
    ) -> tuple[ControllerFailure, ...]:
        """Tell that objects are about to be removed; whom that did not reach."""
        question = TerminateRequest(app_context=context)
        found = [await self._called(call, TERMINATE, question, ended_words) for call in actions]
        return tuple(each for each in found if each)

    async def remove(self, context: str) -> None:
        """When nobody asks for it any more. Raises EndpointError."""
        async with etcd_store(self._etcd, REMOVAL_SECONDS) as store:
            await store.delete(AppContext(context).root)

    async def _called(
        self,
        call: ControllerCall,
        method: Method[Any, A],
        question: Message,
        refused_words: Callable[[A], str | None],
    ) -> ControllerFailure | None:
        terms = terms_of(call.spec, self._terms)
        with TRACING.phase(f"controller {call.name}"):
            try:
                async with asyncio.timeout(terms.deadline_seconds):
                    async with connected(endpoint_of(call, self._identity)) as channel:
                        answer = await ask(channel, method, question, terms.deadline_seconds)
                token, why = CallFailure.FAILED, refused_words(answer)
            except TimeoutError:
                token, why = CallFailure.TIMED_OUT, LATE
            except EndpointError as error:
                token = error.failure
                why = LATE if token is CallFailure.TIMED_OUT else str(error)
            except DovetailError as error:
                token, why = CallFailure.FAILED, str(error)
        CALLS.labels("action", "answered" if why is None else token.value).inc()
        return None if why is None else failure_of(call, terms, token, why)

    async def _try_to_remove(self, context: AppContext) -> None:
        try:
            await self.remove(context.identifier)
        except EndpointError as error:
            LOG.warning("context not removed", context=context.identifier, why=str(error))


def failure_of(
    call: ControllerCall, terms: CallTerms, token: CallFailure, why: str
) -> ControllerFailure:
    """There is no last answer to an action: it is refused or ignored."""
    is_refusal = terms.policy is not FailurePolicy.IGNORE
    done = "nothing is deployed without it" if is_refusal else "left out, by its policy"
    what = f"controller {call.name} (deadline {terms.deadline_seconds:g} s): {why}"
    return ControllerFailure(
        controller=call.name, token=token.value, words=f"{what}; {done}", is_refusal=is_refusal
    )


def updated_words(answer: Any) -> str | None:
    """Why not; None if it did."""
    return None if answer.app_context_updated else _said(answer.app_context_update_message)


def ended_words(answer: Any) -> str | None:
    return None if answer.app_context_terminated else _said(answer.app_context_terminated_message)


def event_words(answer: Any) -> str | None:
    return None if answer.success else _said(answer.post_event_message)


def _said(words: str) -> str:
    return " ".join(words.split())[:500] or "it has no reason to give"


def numbered(placed: PlacedObjects) -> dict[str, dict[ClusterName, ContextCluster]]:
    """The clusters are chosen: each is an alternative to none."""
    return {
        app: {
            cluster: ContextCluster(number, objects)
            for number, (cluster, objects) in enumerate(clusters.items(), 1)
        }
        for app, clusters in placed.items()
    }


def left_objects(
    context: AppContext, values: Mapping[str, bytes], placed: PlacedObjects
) -> dict[str, dict[ClusterName, tuple[ManifestObject, ...]]]:
    """What is there now: those that were, in their order, then those that are new, by name.

    Raises BadAnswer if the clusters are not those that were chosen.
    """
    left = context.clusters(values, placed)
    for app, clusters in placed.items():
        if set(left[app]) != set(clusters):
            raise BadAnswer(
                f"has {app} on {', '.join(left[app]) or 'no cluster'}, "
                f"where {', '.join(clusters)} was chosen"
            )
    return {
        app: {
            cluster: merged(objects, context.objects(values, app, cluster))
            for cluster, objects in clusters.items()
        }
        for app, clusters in placed.items()
    }


def merged(
    before: Sequence[ManifestObject], after: Mapping[str, ManifestObject]
) -> tuple[ManifestObject, ...]:
    """Objects for which the layout has no place are as they were."""
    named = by_resource_name(before)
    names = {id(each): name for name, each in named.items()}
    found = []
    for each in before:
        name = names.get(id(each))
        if name is None:
            found.append(each)
        elif name in after:
            found.append(after[name])
    return (*found, *(after[name] for name in sorted(after) if name not in named))
