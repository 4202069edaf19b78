"""The differential runner, against a small server of its own."""

from __future__ import annotations

import base64
import datetime
import json
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tools.differential import golden, sequences
from tools.differential.cases import Case, CaseError, load_file, step
from tools.differential.masks import mask
from tools.differential.play import play
from tools.differential.target import Target


def masked(*bodies: Any, given: str = "", keep: bool = True, any_order: bool = False) -> list[Any]:
    records = [{"body": json.loads(json.dumps(body))} for body in bodies]
    found = mask(
        records, namespace="ns-x", group="ns-x.example.com", given=given, keep_managed_fields=keep, any_order=any_order
    )
    return [record["body"] for record in found]


def an_object(version: int, uid: str = "", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "resourceVersion": str(version), "uid": uid or str(uuid.uuid4()), **metadata}}


class TestMasks:
    def test_uids_are_numbered_in_order_and_stay_the_same(self) -> None:
        one, two = str(uuid.uuid4()), str(uuid.uuid4())
        first, second = masked(an_object(1, one), {"message": f"{two} is not {one}"})
        assert first["metadata"]["uid"] == "U1"
        assert second["message"] == "U2 is not U1"

    def test_a_uid_of_the_request_is_not_accidental(self) -> None:
        uid = "00000000-0000-0000-0000-000000000001"
        assert masked({"message": uid}, given=uid) == [{"message": uid}]

    def test_versions_are_ranked_by_size_not_by_appearance(self) -> None:
        late, early = masked(an_object(907), an_object(12))
        assert (early["metadata"]["resourceVersion"], late["metadata"]["resourceVersion"]) == ("R1", "R2")

    def test_a_list_says_what_it_must_include(self) -> None:
        inside = an_object(10)
        for version, expected in ((10, ">=R1"), (15, ">=R1"), (20, ">=R2"), (9, ">=R0")):
            (found, _) = masked({"metadata": {"resourceVersion": str(version)}, "items": [inside]}, an_object(20))
            assert found["metadata"]["resourceVersion"] == expected

    def test_a_continue_token_is_opened(self) -> None:
        said = {"v": "meta.k8s.io/v1", "rv": 30, "start": "a\u0000"}
        token = base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")
        (found, _) = masked({"metadata": {"continue": token}, "items": []}, an_object(25))
        assert found["metadata"]["continue"] == {"v": "meta.k8s.io/v1", "rv": ">=R1", "start": "a\u0000"}

    def test_only_times_near_now_are_masked(self) -> None:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
        (found,) = masked({"a": f"{now}Z", "b": f"{now}.123456Z", "c": "2020-01-01T00:00:00Z"})
        assert found == {"a": "T", "b": "T.micro", "c": "2020-01-01T00:00:00Z"}

    def test_generated_names_addresses_and_ports(self) -> None:
        body = {"name": "job-bcd24", "clusterIP": "10.0.0.99", "nodePort": 31234, "text": "job-bcd24 at 10.0.0.99"}
        (found,) = masked(body, given='"generateName": "job-"')
        assert found == {"name": "job-G1", "clusterIP": "IP1", "nodePort": "P1", "text": "job-G1 at IP1"}

    def test_the_namespace_and_the_group_get_their_variables(self) -> None:
        assert masked({"text": "things.ns-x.example.com in ns-x"}) == [{"text": "things.$GROUP in $NS"}]

    def test_managed_fields_are_sorted_or_left_out(self) -> None:
        entries = [{"manager": "b", "operation": "Update"}, {"manager": "a", "operation": "Update"}]
        (found,) = masked(an_object(1, managedFields=entries))
        assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["a", "b"]
        (found,) = masked(an_object(1, managedFields=entries), keep=False)
        assert "managedFields" not in found["metadata"]

    def test_causes_are_sorted_where_their_order_means_nothing(self) -> None:
        causes = [{"field": "b", "message": "bad, very"}, {"field": "a", "message": "worse"}]
        body = {"kind": "Status", "message": "T is invalid: [b: bad, very, a: worse]", "details": {"causes": causes}}
        (found,) = masked(body, any_order=True)
        assert found["message"] == "T is invalid: [a: worse, b: bad, very]"
        assert [cause["field"] for cause in found["details"]["causes"]] == ["a", "b"]
        (found,) = masked(body)
        assert found["message"] == body["message"]

    def test_managers_in_conflict_are_sorted(self) -> None:
        causes = [{"field": ".b", "message": 'conflict with "two"'}, {"field": ".a", "message": 'conflict with "one"'}]
        message = 'Apply failed with 2 conflicts: conflicts with "two":\n- .b\nconflicts with "one":\n- .a'
        (found,) = masked({"kind": "Status", "message": message, "details": {"causes": causes}})
        assert (
            found["message"]
            == 'Apply failed with 2 conflicts: conflicts with "one":\n- .a\nconflicts with "two":\n- .b'
        )
        assert [cause["field"] for cause in found["details"]["causes"]] == [".a", ".b"]

    def test_ages_in_cells_are_masked_and_nothing_else_there(self) -> None:
        (found,) = masked({"rows": [{"cells": ["a", "1/1", "3m5s", 7, "<unknown>"]}], "metadata": {}})
        assert found["rows"][0]["cells"] == ["a", "1/1", "AGE", 7, "<unknown>"]


class TestGolden:
    def test_what_was_written_is_read(self, tmp_path: Path) -> None:
        cases = {"one": [{"status": 200, "body": {"a": [1, None]}}], "two": []}
        golden.write("family", cases, tmp_path)
        assert golden.read("family", tmp_path) == cases
        assert golden.read("other", tmp_path) == {}

    @pytest.mark.parametrize(
        ("expected", "actual", "lines"),
        [
            ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
            ({"a": None}, {}, ["a: missing, expected null"]),
            ({}, {"a": {"b": 1}}, ['a: {"b": 1} was not expected']),
            ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, ["a[0].b: 2 instead of 1"]),
            ({"a": 1}, {"a": True}, ["a: true instead of 1"]),
            ([1], [1, 2], [": 2 items instead of 1: [1, 2] / [1]"]),
        ],
    )
    def test_differences_name_their_place(self, expected: Any, actual: Any, lines: list[str]) -> None:
        assert golden.differences(expected, actual) == lines


class Small(BaseHTTPRequestHandler):
    """Keeps what is posted, gives it back, and watches it."""

    protocol_version = "HTTP/1.1"
    kept: dict[str, Any] = {}  # noqa: RUF012

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body["metadata"] |= {"uid": str(uuid.uuid4()), "resourceVersion": str(len(self.kept) + 5)}
        self.kept[f"{self.path}/{body['metadata']['name']}"] = body
        self.answer(201, body)

    def do_GET(self) -> None:
        if "watch=1" in self.path:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            for made in self.kept.values():
                self.wfile.write(json.dumps({"type": "ADDED", "object": made}).encode() + b"\n")
            self.close_connection = True
        elif self.path in self.kept:
            self.answer(200, self.kept[self.path])
        else:
            self.answer(404, {"kind": "Status", "reason": "NotFound"})

    def do_PUT(self) -> None:
        self.answer(200, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Warning", '299 - "careful"')
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests are silent."""


@pytest.fixture
def target() -> Iterator[Target]:
    Small.kept = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Small)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    target = Target(f"http://127.0.0.1:{server.server_port}")
    yield target
    target.close()
    server.shutdown()
    thread.join()
    server.server_close()


def cases(folder: Path, text: str) -> list[Case]:
    (folder / "family.yaml").write_text(text)
    return load_file(folder / "family.yaml")


FAMILY = """
cases:
  - id: one
    steps:
      - {POST: $CORE/secrets, body: {metadata: {name: a}, n: 1}, save: a, quiet: true}
      - GET $CORE/secrets/a
      - {PUT: $CORE/secrets/a, from: a, merge: {n: 2, seen: "${a.metadata.resourceVersion}"}}
      - GET $CORE/secrets/b
      - {watch: "$CORE/secrets?watch=1", until: close}
"""


def test_a_case_is_played_and_masked(tmp_path: Path, target: Target) -> None:
    (case,) = cases(tmp_path, FAMILY)
    read, changed, missing, watched = play(case, target)
    assert read["request"] == "GET $CORE/secrets/a"
    assert read["headers"] == {"Warning": ['299 - "careful"']}
    assert read["body"]["metadata"] | {"uid": "U", "resourceVersion": "R"} == {
        "name": "a",
        "uid": "U",
        "resourceVersion": "R",
    }
    assert (changed["body"]["n"], changed["body"]["seen"]) == (2, "6")
    assert (missing["status"], missing["type"]) == (404, "application/json")
    assert [event["type"] for event in watched["events"]] == ["ADDED", "ADDED"]


def test_a_preparation_that_fails_stops_the_case(tmp_path: Path, target: Target) -> None:
    (case,) = cases(tmp_path, "cases: [{id: one, steps: [{GET: /nowhere, quiet: true}]}]")
    with pytest.raises(CaseError, match="family/one: GET /nowhere: 404"):
        play(case, target)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cases: [{id: a, steps: [JUMP /x]}]", "not a request: 'JUMP /x'"),
        ("cases: [{id: a, steps: [{GET: /x, bdy: {}}]}]", "not a step"),
        ("cases: [{id: a, steps: []}, {id: a, steps: []}]", "two cases have the name a"),
        ("way: magic\ncases: []", "there is no way 'magic'"),
        ("cases: [{id: a}]", "KeyError 'steps'"),
        ("cases: [{id: a", r"(?s)family.yaml: .*line 1"),
    ],
)
def test_a_case_that_is_written_wrongly_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(CaseError, match=words):
        cases(tmp_path, text)


def test_short_types_become_media_types() -> None:
    assert step({"PATCH": "/x", "type": "apply", "body": {}}).content_type == "application/apply-patch+yaml"
    assert step({"POST": "/x", "type": "text/plain", "raw": ""}).content_type == "text/plain"
    assert step("GET /x").content_type is None


@pytest.mark.parametrize("shape", sorted(sequences.SHAPES))
def test_a_seed_gives_one_sequence_for_ever(shape: str) -> None:
    head = {"metadata": {"name": "x"}}
    made = [sequences.sequence("/things", head, shape, seed, 8) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
    assert made[0][0]["PATCH"] == "/things/x?fieldManager=one"
    assert head == {"metadata": {"name": "x"}}
