"""One pass over one object, from its key to what the queue is told.

1. The object is read from the cache. Gone: nothing to do.
2. It is being deleted: its finalizers run, and nothing else. Without any of ours: nothing is written.
3. Finalizers that are missing are added, before anything else is done.
4. The reconciler runs, under its deadline.
5. What it raised is judged; conditions are stated; the status is written if it differs; people are told by events.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from flyball import strict
from flyball.api import DynamicObject, decode
from flyball.api.codec import origin
from flyball.client.kinds import kind_of
from flyball.controller.context import Context
from flyball.controller.failures import InvalidSpec, Verdict, is_cancelled_from_outside, judge
from flyball.controller.finalizers import add_finalizers, remove_finalizer
from flyball.controller.logs import enter_pass, leave_pass
from flyball.controller.primary import changed_spec, expect_fitting_spec, spec_bytes
from flyball.controller.reconciler import Step, check_answer
from flyball.controller.request import Request, Result
from flyball.controller.status import StatusDraft, new_draft
from flyball.controller.strictness import report
from flyball.controller.threads import in_thread
from flyball.controller.timing import within
from flyball.errors import FlyballError, Invalid, NotFound

if TYPE_CHECKING:
    from flyball.controller.events import EventType
    from flyball.controller.running import RunningController

__all__ = ["End", "Pass"]


@dataclass(slots=True)
class End:
    """How a pass ended: with a wait (None: until something happens), or with a verdict on its error."""

    wait: float | None = None
    verdict: Verdict | None = None
    timed_out: bool = False


class Pass:
    """One pass; see the module for its steps."""

    def __init__(
        self, running: RunningController[Any], request: Request, reasons: tuple[str, ...], pass_id: str
    ) -> None:
        """Nothing is read yet."""
        self.running = running
        self.request = request
        self.ctx = Context(running, request, reasons, pass_id)
        self.ctx.own = self
        self._obj: Any = None
        self._draft: StatusDraft | None = None
        self._quiet = False
        """Nothing may be written about the object: it is gone, or not ours any more."""
        self._deleting: tuple[str, str] | None = None

    async def run(self) -> End:
        """Do it; never raises but when the process stops."""
        running, ctx = self.running, self.ctx
        token = enter_pass(ctx.fields)
        try:
            answer, error = await self._guarded()
            ctx.close("it ended")
            verdict = self._judge(error)
            if running.raw and self._obj is None:
                self._look_again(verdict)
            trouble = await self._report(verdict or self._told())
            if verdict is None and trouble is not None:
                error, verdict = trouble, self._judge(trouble)
            if error is not None and verdict is not None:
                self._log(error, verdict)
                timed_out = isinstance(error, TimeoutError)
                return End(None, verdict, timed_out)
            running.went_well(self.request)
            if self._obj is None and not (running.raw and self._is_there()):
                running.forget(self.request)
            return End(ctx.wait(answer))
        finally:
            ctx.close("it ended")
            leave_pass(token)

    async def _guarded(self) -> tuple[Result | None, BaseException | None]:
        running = self.running
        seconds = running.options.reconcile_timeout
        try:
            if seconds is None:
                return await self._steps(), None
            words = f"{running.name}: the pass over {self.request}"
            async with within(running.runtime.clock, seconds, words):
                return await self._steps(), None
        except (asyncio.CancelledError, SystemExit) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled_from_outside():
                raise
            return None, error
        except Exception as error:
            return None, error

    # -- the steps -----------------------------------------------------------------------------------------------------

    async def _steps(self) -> Result | None:
        running, ctx = self.running, self.ctx
        definition = running.definition
        if running.raw:
            return await self._call(definition.step, self.request)
        obj = self._read()
        if obj is None:
            return None
        if ctx.deleting:
            return await self._finalize(obj)
        expect_fitting_spec(obj)
        if definition.finalizers:
            names = [one.name for one in definition.finalizers]
            obj = await add_finalizers(ctx, obj, names)
            self._take(obj)
            ctx.begin(obj)
        spec = spec_bytes(obj) if strict.enabled() else None
        answer = await self._call(definition.step, obj)
        if spec is not None and spec_bytes(obj) != spec:
            report("M-29", changed_spec(obj), code=running.code)
        return answer

    def _read(self) -> Any:
        """Read the object, and let the pass be about it."""
        running = self.running
        view = running.primary.peek(self.request.name, self.request.namespace)
        if view is None:
            return None
        try:
            obj: Any = view.read_as(running.kind)
        except (msgspec.MsgspecError, ValueError) as error:
            self._take(decode(DynamicObject, msgspec.json.encode(view.plain())))
            raise InvalidSpec(f"{running.kind.word} {self.request} cannot be read: {error}") from None
        self._take(obj)
        self.ctx.begin(obj)
        return obj

    def _is_there(self) -> bool:
        return self.running.primary.peek(self.request.name, self.request.namespace) is not None

    def load(self) -> None:
        """Read the object for a raw reconciler; from then on the pass is about it."""
        obj = self._read()
        if self.ctx.deleting:
            self._quiet = True
        elif obj is not None:
            expect_fitting_spec(obj)

    async def write(self) -> bool:
        """Write the status as it is now, if it differs; what is put into it later is written at the end."""
        obj = self._obj
        if obj is None or self._draft is None or self._quiet:
            return False
        try:
            written = await self._state(obj, self._told())
        except FlyballError:
            self._draft = None  # what could not be written now cannot be written at the end
            raise
        if written:
            self._take(obj)
        return written

    def _take(self, obj: Any) -> None:
        options = self.running.options
        self._obj = obj
        self._draft = new_draft(obj, owned=options.conditions, error_condition=options.error_condition)

    async def _call(self, step: Step, subject: Any) -> Result | None:
        if step.in_thread:
            return check_answer(await in_thread(step, subject, self.ctx, abandon=lambda: self.running.stopping))
        return check_answer(await step(subject, self.ctx))

    async def _finalize(self, obj: Any) -> Result | None:
        present = list(obj.metadata.finalizers)
        mine = [one for one in self.running.definition.finalizers if one.name in present]
        if not mine:
            if self.running.options.while_deleting:
                return await self._call(self.running.definition.step, obj)
            self._quiet = True
            return None
        streak = self.running.streak(self.request)
        if not streak.finalizing:
            streak.finalizing = True
            self.running.queue.forget(self.request)
        for finalizer in mine:
            self._deleting = ("Finalizing", f"{finalizer.name} is at work")
            answer = await self._call(finalizer.step, obj)
            if self.ctx.wait(answer) is not None:
                return answer
            left = await remove_finalizer(self.ctx, obj, finalizer.name)
            if left is None:
                self._quiet, self._obj = True, None
                return None
            obj.metadata.finalizers[:] = list(left.metadata.finalizers)
            obj.metadata.resource_version = left.metadata.resource_version
        self._quiet = True
        return None

    def _look_again(self, verdict: Verdict | None) -> None:
        """Of a raw reconciler only the key is known: read the object that is to be told about."""
        running = self.running
        telling = running.options.error_condition is not None
        view = running.primary.peek(self.request.name, self.request.namespace)
        if view is None or view.record.deletion_timestamp or not (telling or (verdict and verdict.reason)):
            return
        try:
            obj: Any = view.read_as(running.kind)
        except (msgspec.MsgspecError, ValueError):
            return
        if telling:
            self._take(obj)
        else:
            self._obj = obj

    # -- what follows --------------------------------------------------------------------------------------------------

    def _judge(self, error: BaseException | None) -> Verdict | None:
        if error is None:
            return None
        return self.running.streak(self.request).weigh(error, judge(error))

    def _told(self) -> Verdict | None:
        """What follows for the status from what the reconciler has reported."""
        return judge(self.ctx.told) if self.ctx.told is not None else None

    async def _report(self, verdict: Verdict | None) -> FlyballError | None:
        """Write the status and tell people; returns what went wrong with that."""
        obj = self._obj
        if obj is None or self._quiet:
            return None
        try:
            await self._state(obj, verdict)
        except FlyballError as failure:
            return failure
        return None

    async def _state(self, obj: Any, verdict: Verdict | None) -> bool:
        """Write the status if it differs, and tell people of the error; returns whether anything was written."""
        draft = self._draft
        known = draft.reason_before(self.running.options.error_condition) if draft is not None else None
        try:
            return await self._write_status(obj, draft, verdict) if draft is not None else False
        finally:
            if verdict is not None and verdict.reason and verdict.answer != "after":
                self._tell_error(obj, verdict, known)

    async def _write_status(self, obj: Any, draft: StatusDraft, verdict: Verdict | None) -> bool:
        deleting = self._deleting
        if deleting is not None and verdict is not None and verdict.reason:
            deleting = (verdict.reason, verdict.message)
        draft.finish(self.ctx.now(), verdict, deleting=deleting)
        if not draft.differs:
            return False
        try:
            await self._send_status(obj, draft)
        except Invalid as failure:
            # The server refuses what the pass has put in: say that, on the status as it was.
            draft.reset()
            told = Verdict("backoff", "ReconcileError", f"its status was refused: {failure}")
            draft.finish(self.ctx.now(), told, deleting=deleting)
            if draft.differs:
                await self._send_status(obj, draft)
            raise StatusRefused(
                f"{self.running.name}: the status of {self.request} was refused: {failure}"
            ) from failure
        options = self.running.options
        told_below = options.error_condition if verdict is not None and verdict.reason else None
        for change in draft.transitions():
            if change.type in options.events_on and change.type != told_below and change.is_news:
                kind: EventType = "Warning" if change.is_bad else "Normal"
                self.ctx.record(kind, change.after.reason, change.after.message or change.type, about=obj)
        return True

    async def _send_status(self, obj: Any, draft: StatusDraft) -> None:
        running, metadata = self.running, obj.metadata
        base, client = metadata.resource_version, running.runtime.client
        options = getattr(type(obj), "kind_options", None)
        part = None if options is not None and options.status_subresource is False else "status"
        patch = None if part is not None and origin(obj) is not None else draft.patch()
        with running.runtime.cache.writing(kind_of(obj), metadata.name, metadata.namespace, base=base) as write:
            try:
                answer = await client.patch(
                    obj, patch, subresource=part, guard=True, field_manager=running.field_manager
                )
            except NotFound as failure:
                if not failure.details.get("name"):
                    raise
                return  # the object is gone
            running.note_own(answer.metadata.uid, answer.metadata.resource_version)
            write.done(answer)
            metadata.resource_version = answer.metadata.resource_version
            vars(obj)["_origin"] = origin(answer)

    def _tell_error(self, obj: Any, verdict: Verdict, known: tuple[str, int] | None) -> None:
        """One event when the reason changes; of an invalid spec, one for each generation."""
        generation = int(obj.metadata.generation or 0) if verdict.reason == "InvalidSpec" else 0
        said = (verdict.reason, generation)
        streak = self.running.streak(self.request)
        before = streak.reported
        if before is None and known is not None:
            before = (known[0], known[1] if verdict.reason == "InvalidSpec" else 0)
        streak.reported = said
        if before != said:
            self.ctx.record("Warning", verdict.reason, verdict.message, about=obj, action="Reconcile")

    def _log(self, error: BaseException, verdict: Verdict) -> None:
        log = self.ctx.log
        if verdict.answer in ("silent", "ended"):
            log.debug("%s: %s", verdict.answer, error)
        elif verdict.answer == "after":
            log.info("%s", error)
        elif verdict.trouble and not verdict.reason:
            log.warning("%s", error)
        else:
            trace = error if verdict.traceback and log.isEnabledFor(logging.ERROR) else None
            log.error("%s failed: %s: %s", self.request, verdict.reason, verdict.message, exc_info=trace)


class StatusRefused(FlyballError):
    """The server does not take the status that the reconciler has made."""
