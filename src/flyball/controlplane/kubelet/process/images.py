"""Images: names that stand for commands of this machine.

Nothing is pulled, and nothing of an image is here but its name. A Pod may use the names in the map, and no others:
registries, tags and digests are ignored, `docker.io/library/busybox:1.36` is `busybox`.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from flyball.errors import ConfigError

__all__ = ["Image", "Images", "InvalidImageName", "is_valid_name"]

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_HIDDEN: Final = ("/tmp", "/run", "/var/tmp")  # noqa: S108 - where containers have folders of their own
_REFERENCE: Final = re.compile(
    r"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
    r"(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::[\w][\w.-]{0,127})?(?:@[a-z0-9+._-]+:[0-9a-fA-F]{32,})?"
)


class InvalidImageName(ValueError):
    """A text that is no name of an image."""


def is_valid_name(name: str) -> bool:
    """Tell whether a text is a reference to an image."""
    return _REFERENCE.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Image:
    """What an image would say of itself: `command` is its entry point, which a Pod's `command` replaces."""

    command: Sequence[str] = ()
    args: Sequence[str] = ()
    """Replaced by a Pod's `args`, and by its `command`."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    working_dir: str = "/"
    visible: Sequence[str] = ()
    """Paths of this machine that its processes need, in folders of which they see nothing otherwise."""

    def argv(self, command: Sequence[str] | None, args: Sequence[str] | None) -> list[str]:
        """Return the words of the command line, as a container runtime puts them together."""
        if command:
            return [*command, *(args or ())]
        return [*self.command, *(args if args else self.args)]


def _busybox() -> Image:
    return Image(args=("sh",), env={"PATH": _PATH})


def _python() -> Image:
    """The interpreter that runs this, by the names `python` and `python3`."""
    prefixes = dict.fromkeys((sys.prefix, sys.base_prefix))
    path = f"{Path(sys.executable).parent}:{_PATH}"
    return Image(args=("python3",), env={"PATH": path}, visible=_hidden(prefixes))


def _hidden(paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of the paths that lie where a container would not see them."""
    return tuple(path for path in paths if any(path.startswith(f"{folder}/") for folder in _HIDDEN))


class Images:
    """The map from names to commands."""

    def __init__(self, others: Mapping[str, Image] | None = None) -> None:
        """`busybox` and `python` are there; others come beside them, or instead of them."""
        self._known = {"busybox": _busybox(), "python": _python(), **(others or {})}

    def find(self, reference: str) -> Image | None:
        """Return what an image stands for. Raises InvalidImageName."""
        if not is_valid_name(reference):
            raise InvalidImageName(reference)
        name = _repository(reference)
        return self._known.get(name) or self._known.get(name.rpartition("/")[2])

    @property
    def names(self) -> list[str]:
        """The names that Pods may use."""
        return sorted(self._known)

    @classmethod
    def given(cls, options: Iterable[str] = (), file: Path | None = None) -> Images:
        """Read what a user gave: `NAME=COMMAND` each, and a YAML file. Raises ConfigError."""
        others = {} if file is None else _from_file(file)
        for option in options:
            name, separator, command = option.partition("=")
            if not separator or not name or not command.strip():
                raise ConfigError(f"--image {option!r}: give a name and a command: --image NAME=COMMAND")
            others[_named(name)] = _image({"command": _words(command, f"--image {option!r}")}, f"--image {option!r}")
        return cls(others)


def _repository(reference: str) -> str:
    """Take registry, tag and digest off."""
    name = reference.partition("@")[0]
    head, slash, last = name.rpartition("/")
    name = f"{head}{slash}{last.partition(':')[0]}"
    first, slash, rest = name.partition("/")
    return rest if slash and ("." in first or ":" in first or first == "localhost") else name


def _named(name: str) -> str:
    if not is_valid_name(name):
        raise ConfigError(f"image {name!r}: this is no name of an image; use small letters, digits, '-', '.' and '/'")
    return _repository(name)


def _words(command: str, where: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}; quote it as for a shell (no shell runs it)") from None


def _from_file(file: Path) -> dict[str, Image]:
    try:
        content: Any = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"read the images of {file}: {error}; name a YAML file") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"read the images of {file}: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: it maps names of images to commands, such as `web: python -m http.server`")
    known: dict[Any, Any] = content
    return {_named(str(name)): _image(value, f"{file}: {name}") for name, value in known.items()}


def _image(value: Any, where: str) -> Image:
    if isinstance(value, str):
        value = {"command": _words(value, where)}
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: give a command, or a map with command, args, env and workingDir")
    given: dict[str, Any] = value
    unknown = sorted(set(given) - {"command", "args", "env", "workingDir", "visible"})
    if unknown:
        raise ConfigError(
            f"{where}: {', '.join(unknown)} is not known; there are command, args, env, workingDir, visible"
        )
    command, args, visible = (_list(given.get(name), f"{where}: {name}") for name in ("command", "args", "visible"))
    env: Any = given.get("env") or {}
    if not isinstance(env, dict):
        raise ConfigError(f"{where}: env: give a map from names to values")
    pairs: dict[Any, Any] = env
    needed = [*visible, *_needed([*command, *args])]
    return Image(
        command=tuple(command),
        args=tuple(args),
        env={"PATH": _PATH, **{str(name): str(one) for name, one in pairs.items()}},
        working_dir=str(given.get("workingDir") or "/"),
        visible=_hidden(dict.fromkeys(needed)),
    )


def _list(value: Any, where: str) -> list[str]:
    if isinstance(value, str):
        return _words(value, where)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ConfigError(f"{where}: give a list of words")
    words: list[Any] = value
    return [str(word) for word in words]


def _needed(words: Sequence[str]) -> list[str]:
    """Name what a command needs to see: the files it names, and where an interpreter of it has its modules."""
    found: list[str] = []
    program = shutil.which(words[0]) if words else None
    for word in [program, *words[1:]] if program is not None else words:
        path = Path(word)
        if not path.is_absolute() or not path.exists():
            continue
        environment = path.parent.parent
        if (environment / "pyvenv.cfg").exists():
            found += [str(environment), sys.base_prefix]
        found.append(str(path if path.is_dir() or str(path.parent) in _HIDDEN else path.parent))
    return found
