from __future__ import annotations

from typing import Any

import pytest
from tests.support.scripted import Answer, ScriptedTransport, json_answer, status_answer
from tests.support.widgets import Widget

from flyball.client.kinds import ALL_NAMESPACES, Ref, kind_from
from flyball.client.refusals import RefusedRequest
from flyball.client.server_warnings import ServerWarning
from flyball.client.session import Options, Session
from flyball.client.transport import HttpRequest, HttpResponse, Interceptor, Send
from flyball.errors import Conflict, Forbidden, MalformedAnswer
from flyball.k8s.core.v1 import Namespace


def session(*answers: Any, interceptors: tuple[Interceptor, ...] = (), **options: Any) -> Session:
    return Session(ScriptedTransport(*answers), namespace="home", options=Options(**options), interceptors=interceptors)


def a_request(on: Session) -> HttpRequest:
    return on.request("GET", "/x", action="get X y")


async def test_where_an_object_lives() -> None:
    at = session()
    assert (await at.one(Ref(kind_from(Widget), "w"))).namespace == "home"
    assert (await at.one(Ref(kind_from(Widget), "w", "theirs"))).namespace == "theirs"
    assert (await at.one(Ref(kind_from(Widget), "w"), "given")).namespace == "given"
    assert (await at.one(Ref(kind_from(Namespace), "n"))).namespace is None
    assert (await at.collection(kind_from(Widget), None)).namespace == "home"
    assert (await at.collection(kind_from(Widget), ALL_NAMESPACES)).namespace is None
    assert (await at.collection(kind_from(Namespace), ALL_NAMESPACES)).namespace is None


async def test_contradictions_are_refused() -> None:
    at = session()
    with pytest.raises(RefusedRequest, match=r"Namespace does not live in namespaces, but namespace 'x' was given"):
        await at.one(Ref(kind_from(Namespace), "n", "x"))
    with pytest.raises(RefusedRequest, match=r"namespace is 'a', but 'b' was given"):
        await at.one(Ref(kind_from(Widget), "w", "a"), "b")
    with pytest.raises(RefusedRequest, match=r"lives in one namespace"):
        await at.one(Ref(kind_from(Widget), "w"), ALL_NAMESPACES)


async def test_words() -> None:
    at = session()
    assert (await at.one(Ref(kind_from(Widget), "w"))).words == "Widget home/w"
    assert (await at.one(Ref(kind_from(Namespace), "n"))).words == "Namespace n"
    assert (await at.collection(kind_from(Widget), None)).words == "Widget in home"
    assert (await at.collection(kind_from(Widget), "*")).words == "Widget in all namespaces"
    assert (await at.collection(kind_from(Namespace), None)).words == "Namespace"


async def test_a_refusal_is_an_error_that_says_what_was_done() -> None:
    answer = status_answer(409, "Conflict", "it was changed")
    at = session(answer)
    with pytest.raises(Conflict, match=r"^get X y: conflict: it was changed$"):
        await at.call(a_request(at))
    assert answer.closed


async def test_a_redirection_is_a_refusal_too() -> None:
    at = session(Answer(302))
    with pytest.raises(Exception, match=r"302"):
        await at.call(a_request(at))


async def test_the_remedy_of_a_forbidden_request() -> None:
    message = 'deployments.apps is forbidden: User "system:serviceaccount:ns:op" cannot patch resource "deployments" in API group "apps" in the namespace "default"'  # noqa: E501
    at = session(status_answer(403, "Forbidden", message))
    with pytest.raises(Forbidden, match=r'^get X y: deployments.* add @rbac\("apps", "deployments", "patch"\)'):
        await at.call(a_request(at))


@pytest.mark.capability("C7")
async def test_warnings_reach_the_callback_also_from_refusals() -> None:
    seen: list[ServerWarning] = []
    answers = [json_answer({}, Warning='299 - "old"'), status_answer(409, "Conflict")]
    answers[1].headers.add("Warning", '299 - "older"')
    at = Session(ScriptedTransport(*answers), namespace="", options=Options(), on_warning=seen.append)
    await at.call(a_request(at))
    with pytest.raises(Conflict):
        await at.call(a_request(at))
    assert [str(warning) for warning in seen] == ["get X y: old", "get X y: older"]


async def test_a_callback_that_fails_loses_no_connection() -> None:
    def fail(warning: ServerWarning) -> None:
        raise LookupError(warning.text)

    answer = json_answer({}, Warning='299 - "old"')
    at = Session(ScriptedTransport(answer), namespace="", options=Options(), on_warning=fail)
    with pytest.raises(LookupError, match=r"old"):
        await at.call(a_request(at))
    assert answer.closed


async def test_the_first_interceptor_is_the_outermost() -> None:
    seen: list[str] = []

    def named(name: str) -> Interceptor:
        async def interceptor(request: HttpRequest, send: Send) -> HttpResponse:
            seen.append(f"{name} asks")
            answer = await send(request)
            seen.append(f"{name} answers")
            return answer

        return interceptor

    at = session(json_answer({}), interceptors=(named("a"), named("b")))
    await at.call(a_request(at))
    assert seen == ["a asks", "b asks", "b answers", "a answers"]


async def test_an_interceptor_may_answer_itself() -> None:
    async def refuse(request: HttpRequest, send: Send) -> HttpResponse:
        return status_answer(403, "Forbidden", "not today")

    at = session(interceptors=(refuse,))
    with pytest.raises(Forbidden, match=r"not today"):
        await at.call(a_request(at))


@pytest.mark.parametrize("raw", [b"[]", b"null", b"<html>", b'{"metadata":', b"", b'{"metadata":"\xff"}'])
async def test_an_answer_that_is_no_object_is_said_to_be_so(raw: bytes) -> None:
    at = session()
    target = await at.one(Ref(kind_from(Widget), "w"))
    with pytest.raises(MalformedAnswer, match=r"^get Widget: script:6443: "):
        at.read(target, raw, "get Widget")


def test_the_options_hold_unless_a_call_says_otherwise() -> None:
    at = session(timeout=5.0, field_manager="me", field_validation="Warn")
    assert at.request("GET", "/x", action="").timeout == 5.0
    assert at.request("GET", "/x", action="", timeout=2.0).timeout == 2.0
    assert at.write_query({}) == (("fieldManager", "me"), ("fieldValidation", "Warn"))
    assert at.write_query({"field_manager": "you", "field_validation": "Strict"}, force=True) == (
        ("fieldManager", "you"),
        ("fieldValidation", "Strict"),
        ("force", "true"),
    )


@pytest.mark.capability("C4")
def test_a_dry_run_client_cannot_be_talked_out_of_it() -> None:
    assert session(dry_run=True).write_query({"dry_run": False}) == (("dryRun", "All"),)
    assert session().write_query({"dry_run": True}) == (("dryRun", "All"),)
    assert session().write_query({}) == ()
