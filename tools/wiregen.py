"""Read from the Go types of Kubernetes what OpenAPI does not say, and write it down as facts.

For each field of each type: the number it has in protobuf, its wire type, and whether Go writes it when it is empty.
The result is `src/flyball/k8s/_facts/wire-1.36.json.xz`; it holds names and numbers only.

    python tools/wiregen.py [--modules ~/go/pkg/mod/k8s.io] [--check]

The Go modules come with `make real-control-plane`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "src/flyball/k8s/_facts/wire-1.36.json.xz"
VERSION = "v0.36.4"

_STRUCT = re.compile(r"^type (\w+) struct ?\{(?:\}|\n(.*?)^\})", re.MULTILINE | re.DOTALL)
_ALIAS = re.compile(r"^type (\w+) (?:= )?(?!struct|interface|func)([\w\.\[\]\*]+)\s*(?://.*)?$", re.MULTILINE)
_FIELD = re.compile(r"^\s+(?:(\w+)\s+)?([\*\[\]\w\.]+)\s+`([^`]*)`", re.MULTILINE)
_IMPORT = re.compile(r'^\s*(?:import\s+)?(?:(\w+)\s+)?"(k8s\.io/[^"]+)"', re.MULTILINE)
_TAG = re.compile(r'(\w+):"([^"]*)"')

SCALARS = {
    "string": "s",
    "bool": "b",
    "int": "i",
    "int32": "i",
    "int64": "l",
    "uint8": "i",
    "uint32": "i",
    "uint64": "l",
    "float32": "d",
    "float64": "d",
}
"""Go's basic types, by how they look in JSON."""

SPECIAL = {
    "k8s.io/apimachinery/pkg/apis/meta/v1.Time": "T",
    "k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime": "U",
    "k8s.io/apimachinery/pkg/apis/meta/v1.Duration": "D",
    "k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1": "R",
    "k8s.io/apimachinery/pkg/apis/meta/v1.Verbs": "[s",
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "Q",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "I",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "R",
    "k8s.io/apimachinery/pkg/types.UID": "s",
    "k8s.io/api/authentication/v1.ExtraValue": "[s",
    "k8s.io/api/authorization/v1.ExtraValue": "[s",
    "k8s.io/api/certificates/v1.ExtraValue": "[s",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON": "R",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray": "X",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool": "X",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "X",
}
"""Types with a JSON form of their own."""


class Package(NamedTuple):
    """A Go package: its path and its folder."""

    path: str
    folder: Path


def packages(modules: Path) -> Iterator[Package]:
    """Give the packages that hold API types."""
    api = modules / f"api@{VERSION}"
    for folder in sorted(api.glob("*/v*")):
        if (folder / "types.go").exists():
            yield Package(f"k8s.io/api/{folder.relative_to(api)}", folder)
    machinery = modules / f"apimachinery@{VERSION}"
    for part in ("pkg/apis/meta/v1", "pkg/runtime", "pkg/types"):
        yield Package(f"k8s.io/apimachinery/{part}", machinery / part)
    extensions = "pkg/apis/apiextensions/v1"
    yield Package(
        f"k8s.io/apiextensions-apiserver/{extensions}", modules / f"apiextensions-apiserver@{VERSION}" / extensions
    )
    aggregator = "pkg/apis/apiregistration/v1"
    yield Package(f"k8s.io/kube-aggregator/{aggregator}", modules / f"kube-aggregator@{VERSION}" / aggregator)


def published(path: str, name: str) -> str:
    """Return the name of a type in the published schemas."""
    rest = path.removeprefix("k8s.io/")
    return f"io.k8s.{rest.replace('/', '.')}.{name}"


class Reader:
    """Reads the types of all packages; aliases are known before structs are read."""

    def __init__(self, found: list[Package]) -> None:
        """Look at every source file once."""
        self.aliases: dict[str, tuple[str, dict[str, str], str]] = {}
        self.structs: dict[str, tuple[str, str, dict[str, str]]] = {}
        for package in found:
            for source in sorted(package.folder.glob("*.go")):
                if not source.name.endswith("_test.go") and not source.name.startswith(("generated", "zz_")):
                    self._scan(package, source.read_text())

    def _scan(self, package: Package, text: str) -> None:
        imports = {name or path.rpartition("/")[2]: path for name, path in _IMPORT.findall(text)}
        for name, target in _ALIAS.findall(text):
            self.aliases[f"{package.path}.{name}"] = (target, imports, package.path)
        for name, body in _STRUCT.findall(text):
            self.structs[f"{package.path}.{name}"] = (package.path, body, imports)

    def table(self) -> dict[str, list[list[Any]]]:
        """Return the fields of every struct by its published name."""
        table = {}
        for full in sorted(self.structs):
            path, body, imports = self.structs[full]
            fields = [field for field in (self._field(one, path, imports) for one in _FIELD.finditer(body)) if field]
            if fields:
                table[published(path, full.rpartition(".")[2])] = fields
        return table

    def _field(self, found: re.Match[str], path: str, imports: dict[str, str]) -> list[Any] | None:
        go_type, tags = found[2], dict(_TAG.findall(found[3]))
        name, *options = tags.get("json", "-").split(",")
        if name == "-" or ("protobuf" not in tags and "inline" not in options):
            return None
        if go_type in ("metav1.TypeMeta", "TypeMeta") and "inline" in options:
            return None
        number = int(tags["protobuf"].split(",")[1]) if "protobuf" in tags else 0
        flags = ("p" if go_type.startswith("*") else "") + ("o" if "omitempty" in options else "")
        flags += "z" if "omitzero" in options else ""
        return [name, number, self._type(go_type.lstrip("*"), path, imports), flags]

    def _type(self, go_type: str, path: str, imports: dict[str, str]) -> str:
        if go_type in ("[]byte", "[]uint8"):
            return "y"
        if go_type.startswith("[]"):
            return "[" + self._type(go_type[2:].lstrip("*"), path, imports)
        if go_type.startswith("map["):
            return "{" + self._type(go_type.partition("]")[2].lstrip("*"), path, imports)
        if go_type in SCALARS:
            return SCALARS[go_type]
        package, dot, name = go_type.rpartition(".")
        full = f"{imports[package] if dot else path}.{name}"
        if full in SPECIAL:
            return SPECIAL[full]
        if full in self.aliases:
            target, more, home = self.aliases[full]
            return self._type(target, home, more)
        if full in self.structs:
            return "m" + published(full.rpartition(".")[0], name)
        raise SystemExit(f"tools/wiregen: {full} is no type that is known; add its package or its JSON form")


def main() -> None:
    """Write the facts, or check that they are those in the tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=Path, default=Path.home() / "go/pkg/mod/k8s.io")
    parser.add_argument("--check", action="store_true", help="fail when the facts in the tree are others")
    given = parser.parse_args()
    if not (given.modules / f"api@{VERSION}").is_dir():
        print(f"tools/wiregen: no Go module k8s.io/api {VERSION} in {given.modules}: nothing to read", file=sys.stderr)
        sys.exit(0 if given.check else 1)
    table = Reader(list(packages(given.modules))).table()
    text = json.dumps(table, separators=(",", ":"), sort_keys=True).encode()
    if given.check:
        if not TARGET.exists() or lzma.decompress(TARGET.read_bytes()) != text:
            print(f"tools/wiregen: {TARGET.relative_to(ROOT)} is stale: run tools/wiregen.py", file=sys.stderr)
            sys.exit(1)
        return
    TARGET.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(table)} types, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
