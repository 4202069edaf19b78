"""Names that stand for commands, and what a user may say of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from flyball.controlplane.kubelet.process import Image, Images
from flyball.controlplane.kubelet.process.images import InvalidImageName
from flyball.errors import ConfigError


@pytest.mark.parametrize(
    "name",
    [
        "busybox",
        "busybox:1.36",
        "docker.io/library/busybox",
        "localhost/busybox",
        "registry.example:5000/team/busybox:latest@sha256:" + "0" * 64,
    ],
)
def test_registries_tags_and_digests_are_ignored(name: str) -> None:
    assert Images().find(name) == Images().find("busybox") is not None


@pytest.mark.parametrize("name", ["nginx", "busybox/nginx", "mybusybox", "python3"])
def test_other_names_are_not_known(name: str) -> None:
    assert Images().find(name) is None


@pytest.mark.parametrize("name", ["", "Busybox", "a b", "-x", "busybox:", "busybox@sha256", "a//b", "a$(b)"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(InvalidImageName):
        Images().find(name)


def test_commands_and_arguments_are_put_together_as_a_runtime_does() -> None:
    image = Image(command=("serve",), args=("--port", "80"))
    assert image.argv(None, None) == ["serve", "--port", "80"]
    assert image.argv(None, ["--port", "81"]) == ["serve", "--port", "81"]
    assert image.argv(["sh"], None) == ["sh"]
    assert image.argv(["sh"], ["-c", "true"]) == ["sh", "-c", "true"]


def test_options_add_images() -> None:
    images = Images.given(["web=python -m http.server '80 80'", "team/tool:1=true"])
    web, tool = images.find("quay.io/x/web:3"), images.find("team/tool:2")
    assert web is not None
    assert list(web.command) == ["python", "-m", "http.server", "80 80"]
    assert tool is not None
    assert images.names == ["busybox", "python", "team/tool", "web"]


def test_a_full_name_wins_over_its_last_part() -> None:
    images = Images.given(["tool=false", "team/tool=true"])
    found = [images.find(name) for name in ("team/tool", "other/tool")]
    assert [list(one.command) for one in found if one is not None] == [["true"], ["false"]]


def test_files_add_images(tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    file.write_text(
        "web: python -m http.server\ntool:\n  command: [x]\n  args: [y]\n  env: {A: 1}\n  workingDir: /srv\n"
    )
    tool = Images.given(file=file).find("tool")
    assert tool is not None
    assert (list(tool.command), list(tool.args), tool.env["A"], tool.working_dir) == (["x"], ["y"], "1", "/srv")
    assert "/usr/bin" in tool.env["PATH"]


@pytest.mark.parametrize(
    ("options", "content", "told"),
    [
        (["web"], None, "give a name and a command: --image NAME=COMMAND"),
        (["web= "], None, "give a name and a command"),
        (["=true"], None, "give a name and a command"),
        (["We b=true"], None, "this is no name of an image"),
        (["web='true"], None, "No closing quotation; quote it as for a shell"),
        ([], "- a", "it maps names of images to commands"),
        ([], "web: [a", "images.yaml: while parsing"),
        ([], "web: 5", "give a command, or a map"),
        ([], "web: {comand: x}", "comand is not known; there are command, args"),
        ([], "web: {env: [a]}", "env: give a map"),
        ([], "web: {command: {a: b}}", "give a list of words"),
    ],
)
def test_what_makes_no_sense_is_refused(options: list[str], content: str | None, told: str, tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        Images.given(options, None if content is None else file)
    assert told in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="name a YAML file"):
        Images.given(file=tmp_path / "absent.yaml")


def test_what_a_command_needs_is_visible_where_containers_have_their_own_folders(tmp_path: Path) -> None:
    script = tmp_path / "tool.py"
    script.touch()
    image = Images.given([f"tool={sys.executable} {script}"]).find("tool")
    assert image is not None
    if str(tmp_path).startswith("/tmp/"):
        assert str(tmp_path) in image.visible
