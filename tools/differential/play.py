"""Play a case against a server, and give its masked answers."""

from __future__ import annotations

import copy
import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import Any

from tools.differential.cases import Case, CaseError, Step
from tools.differential.masks import mask
from tools.differential.target import Answer, Target, Watching

__all__ = ["Player", "Record", "at", "play", "play_all"]

VARIABLE = re.compile(r"\$\{([^}]+)\}|\$(NS|GROUP|CORE|APPS|BATCH|THINGS)\b")
KEPT_HEADERS = ("Warning", "Retry-After", "Location", "Allow")
PLAYERS = 8
WAIT_SECONDS = 5.0
WATCH_SECONDS = 10.0
LOOK_AGAIN_SECONDS = 0.02
JSON = "application/json"

Record = dict[str, Any]


def play(case: Case, target: Target) -> list[Record]:
    """The answers to the case's requests, in order; CaseError when its preparation fails."""
    player = Player(case, target)
    player.prepare()
    try:
        for step in case.steps:
            player.do(step)
    finally:
        player.clean_up()
    return mask(
        player.records,
        namespace=case.namespace,
        group=player.group,
        given=player.given,
        keep_managed_fields=case.keeps_managed_fields,
        any_order=case.refuses_in_any_order,
    )


def play_all(cases: list[Case], target: Target) -> list[list[Record] | CaseError]:
    """All cases, some at a time: a real server lets the first object of a new kind wait for two seconds."""
    own = threading.local()
    opened: list[Target] = []

    def one(case: Case) -> list[Record] | CaseError:
        if not hasattr(own, "target"):
            own.target = target.another()
            opened.append(own.target)
        try:
            return play(case, own.target)
        except CaseError as error:
            return error
        except (
            OSError,
            HTTPException,
            LookupError,
            TypeError,
            ValueError,
        ) as error:  # an answer of an unexpected shape
            return CaseError(f"{case.id}: {type(error).__name__}: {error}")

    try:
        with ThreadPoolExecutor(PLAYERS) as pool:
            return list(pool.map(one, cases))
    finally:
        for each in opened:
            each.close()


class Player:
    """Plays the steps of one case, and remembers what came back."""

    def __init__(self, case: Case, target: Target) -> None:
        """Nothing is done yet."""
        self.case = case
        self.target = target
        self.group = f"{case.namespace}.example.com"
        self.records: list[Record] = []
        self.given = ""
        self._saved: dict[str, Any] = {}
        self._defined: list[str] = []

    def prepare(self) -> None:
        """A namespace of the case's own; where pods are made, with the account they run as."""
        self.must({"POST": "/api/v1/namespaces"}, {"metadata": {"name": self.case.namespace}})
        if self.case.wants_service_account:
            path = f"/api/v1/namespaces/{self.case.namespace}/serviceaccounts"
            self.must({"POST": path}, {"metadata": {"name": "default"}}, allowed=(201, 409))

    def clean_up(self) -> None:
        """Definitions make a server slower; the rest stays in the case's own namespace."""
        for path in self._defined:
            self.target.send("DELETE", path, {}, None)

    def do(self, step: Step) -> None:
        """One step; what it does is told by its kind."""
        if step.kind == "watch":
            self._watch(step)
        elif step.kind == "wait":
            self._wait(self.text(step.path), step.options["until"])
        elif step.kind == "crd":
            self._define(step)
        else:
            self._request(step)

    # -- requests

    def _request(self, step: Step, body: Any = None) -> Answer:
        data, headers = self._data(step, body), self._headers(step)
        if data is not None and "Content-Type" not in headers:
            headers["Content-Type"] = step.content_type or JSON
        path = self.text(step.path)
        answer = self.target.for_user(step.options.get("as")).send(step.kind, path, headers, data)
        self.given += _authored(step)
        decoded = _decoded(answer.header("Content-Type") or "", answer.body)
        if "save" in step.options:
            self._saved[step.options["save"]] = copy.deepcopy(decoded)
        record = _record(step, answer.status, answer.headers) | {"body": decoded}
        self.records.append(record | ({"quiet": True} if step.options.get("quiet") else {}))
        if step.options.get("quiet") and answer.status >= 300:
            raise CaseError(f"{self.case.id}: {step.kind} {path}: {answer.status} {answer.body.decode()[:600]}")
        return answer

    def _data(self, step: Step, body: Any) -> bytes | None:
        options = step.options
        if "raw" in options:
            return str(self.text(options["raw"])).encode()
        if "from" in options:
            body = _merged(copy.deepcopy(self._saved[options["from"]]), self.expand(options.get("merge", {})))
        elif body is None:
            body = self.expand(options.get("body"))
        if body is None:
            return None
        return body.encode() if isinstance(body, str) else json.dumps(body).encode()

    def _headers(self, step: Step) -> dict[str, str]:
        return {key: self.text(str(value)) for key, value in step.options.get("headers", {}).items()}

    def must(self, request: dict[str, str], body: Any, allowed: tuple[int, ...] = (200, 201)) -> None:
        """A request that has to succeed, and is not recorded."""
        ((method, path),) = request.items()
        answer = self.target.send(method, path, {"Content-Type": JSON}, json.dumps(body).encode())
        if answer.status not in allowed:
            raise CaseError(f"{self.case.id}: {method} {path}: {answer.status} {answer.body.decode()[:300]}")

    # -- waiting

    def _define(self, step: Step) -> None:
        """Make a definition; go on when it is served in all its versions, or was refused."""
        body = self.expand(step.options["crd"])
        answer = self._request(Step("POST", step.path, step.options), body)
        if answer.status != 201:
            return
        made = json.loads(answer.body)
        self._defined.append(f"{step.path}/{made['metadata']['name']}")
        self._wait(f"{step.path}/{made['metadata']['name']}", {"status.conditions.Established": "True"})
        for version in made["spec"]["versions"]:
            if version["served"]:
                self._wait(f"/apis/{made['spec']['group']}/{version['name']}/{made['spec']['names']['plural']}", {})

    def _wait(self, path: str, until: dict[str, Any]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            answer = self.target.send("GET", path, {}, None)
            if answer.status == 200:
                body = json.loads(answer.body)
                if all(at(body, where) == value for where, value in until.items()):
                    return
            if time.monotonic() > deadline:
                raise CaseError(f"{self.case.id}: waited in vain for {until or 'an answer'} of {path}")
            time.sleep(LOOK_AGAIN_SECONDS)

    # -- watches

    def _watch(self, step: Step) -> None:
        options, path = step.options, self.text(step.path)
        watching = self.target.watch(path, self._headers(step), options.get("seconds", WATCH_SECONDS))
        self.given += _authored(step)
        record = _record(Step("GET", step.path), watching.status, watching.headers)
        self.records.append(record)
        try:
            for inner in options.get("during", ()):
                self.do(inner)
            if watching.status == 200:
                record["events"] = _events(watching, options)
            else:
                content_type = dict(watching.headers).get("Content-Type", "")
                record["body"] = _decoded(content_type, watching.rest())
        finally:
            watching.close()

    # -- variables

    def expand(self, value: Any) -> Any:
        """The value with all variables in it replaced."""
        if isinstance(value, dict):
            return {self.text(key): self.expand(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.expand(inner) for inner in value]
        if isinstance(value, str):
            whole = VARIABLE.fullmatch(value)
            if whole and whole[1]:
                return copy.deepcopy(self._variable(whole[1]))
            return self.text(value)
        return value

    def text(self, text: Any) -> Any:
        """The text with all variables in it replaced."""
        if not isinstance(text, str):
            return text
        return VARIABLE.sub(lambda found: str(self._fixed(found[2]) if found[2] else self._variable(found[1])), text)

    def _fixed(self, name: str) -> str:
        namespace = self.case.namespace
        return {
            "NS": namespace,
            "GROUP": self.group,
            "CORE": f"/api/v1/namespaces/{namespace}",
            "APPS": f"/apis/apps/v1/namespaces/{namespace}",
            "BATCH": f"/apis/batch/v1/namespaces/{namespace}",
            "THINGS": f"/apis/{self.group}/v1/namespaces/{namespace}/things",
        }[name]

    def _variable(self, path: str) -> Any:
        name, _, rest = path.partition(".")
        if name not in self._saved:
            raise CaseError(f"{self.case.id}: nothing was saved as {name}")
        return at(self._saved[name], rest) if rest else self._saved[name]


def _events(watching: Watching, options: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    wanted, until = options.get("events"), options.get("until")
    try:
        for event in watching.events():
            found.append(event)
            if len(found) == wanted or (until == "bookmark" and event["type"] == "BOOKMARK"):
                break
    except TimeoutError:
        found.append({"type": "NOTHING MORE", "object": {}})
    return found


def _authored(step: Step) -> str:
    """What the author of the case wrote: that is not accidental when it comes back."""
    written = {key: value for key, value in step.options.items() if key != "during"}
    return f"{step.path} {json.dumps(written)}\n"


def _record(step: Step, status: int, headers: list[tuple[str, str]]) -> Record:
    record: Record = {"request": f"{step.kind} {step.path}", "status": status}
    for name, value in headers:
        if name.lower() == "content-type":
            record["type"] = value
    for wanted in KEPT_HEADERS:
        values = [value for name, value in headers if name.lower() == wanted.lower()]
        if values:
            record.setdefault("headers", {})[wanted] = values
    return record


def _decoded(content_type: str, body: bytes) -> Any:
    """JSON as JSON, anything else as text."""
    text = body.decode("utf-8", "backslashreplace")
    if "json" not in content_type:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def at(value: Any, path: str) -> Any:
    """The value at a dotted path; in a list of conditions a type's name gives its status."""
    for part in path.split("."):
        if isinstance(value, list):
            if part.isdigit():
                value = value[int(part)] if int(part) < len(value) else None
            else:
                value = next((item.get("status") for item in value if item.get("type") == part), None)
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def _merged(body: Any, changes: Any) -> Any:
    """RFC 7386."""
    if not isinstance(changes, dict):
        return changes
    result = dict(body) if isinstance(body, dict) else {}
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
