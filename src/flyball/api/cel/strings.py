"""The string library, version 2: parts of strings, and `format`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from flyball.api.cel.errors import CostExceeded, EvalError
from flyball.api.cel.overloads import Overload, function, member, size_of, tenth
from flyball.api.cel.standard import text
from flyball.api.cel.types import INT, STRING, Type, list_of
from flyball.api.cel.values import Duration, ListValue, MapView, Timestamp, TypeValue, Uint, type_name

__all__ = ["LIBRARY", "clauses", "format_text", "go_quoted", "refusal", "traversal"]


_LONGEST: Final = 10_000_000


def traversal(args: Sequence[Any], result: Any) -> int:
    """Tell what it costs to look at all of a value: a tenth of the bytes of its strings, and 1 for all else."""
    return _traversed(args[0])


def _traversed(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode("utf-8", "surrogatepass")) * 0.1)
    if isinstance(value, bytes):
        return int(len(value) * 0.1)
    if isinstance(value, (list, ListValue)):
        return sum(map(_traversed, value))
    if isinstance(value, MapView):
        return sum(_traversed(key) + _traversed(value.find(key)) for key in value)
    return 1


def _once(args: Sequence[Any], result: Any) -> int:
    return tenth(size_of(args[0]))


def _twice(args: Sequence[Any], result: Any) -> int:
    return math.ceil(size_of(args[0]) * 2 * 0.1)


def _twice_the_result(args: Sequence[Any], result: Any) -> int:
    return math.ceil(len(result) * 2 * 0.1)


def _range(place: int) -> EvalError:
    return EvalError(f"index out of range: {place}")


def _char_at(value: str, place: int) -> str:
    if not 0 <= place <= len(value):
        raise _range(place)
    return value[place : place + 1]


def _index_of(value: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _range(start)
    return -1 if start >= len(value) else value.find(part, start)


def _last_index_of(value: str, part: str, start: int | None = None) -> int:
    if start is None:
        return value.rfind(part)
    if not part:
        return start
    if start < 0:
        raise _range(start)
    return -1 if start >= len(value) else value.rfind(part, 0, start + len(part))


def _substring(value: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvalError(f"invalid substring range. start: {start}, end: {end}")
    for place in (start, len(value) if end is None else end):
        if not 0 <= place <= len(value):
            raise _range(place)
    return value[start:end]


def _replace(value: str, old: str, new: str, count: int = -1) -> str:
    found = value.count(old) if count < 0 else min(count, value.count(old))
    _bounded(len(value) + found * len(new))
    return value.replace(old, new, count if count >= 0 else -1)


def _bounded(length: int) -> None:
    """Refuse to make a text that nothing could be done with: to look at it once would exceed any limit of costs."""
    if length > _LONGEST:
        raise CostExceeded


def _split(value: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return value.split(separator, count - 1 if count > 0 else -1)
    if count < 0 or count >= len(value):
        return list(value)
    return [*value[: count - 1], value[count - 1 :]]


def _join(items: Iterable[Any], separator: str = "") -> str:
    parts: list[str] = []
    for item in items:
        if not isinstance(item, str):
            raise EvalError(f"join: invalid input: {item}")
        parts.append(item)
    _bounded(sum(map(len, parts)) + len(parts) * len(separator))
    return separator.join(parts)


_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER: Final = {code - 32: code for code in _UPPER}
_QUOTED: Final = str.maketrans(dict(zip('\a\b\f\n\r\t\v\\"', [f"\\{c}" for c in 'abfnrtv\\"'], strict=True)))


def _quote(value: str) -> str:
    return f'"{value.translate(_QUOTED)}"'


# --- format -----------------------------------------------------------------------------------------------------------


_WORDS: Final = {
    "s": (
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
        "timestamps"
    ),
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
_RAISED: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NO_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_MOST_DIGITS: Final = 1000


def clauses(pattern: str) -> Iterable[str | tuple[str, int | None]]:
    """Take a format apart: text, and clauses with their precision. Raises `EvalError` at what is neither."""
    at = 0
    while (found := pattern.find("%", at)) >= 0:
        if found > at:
            yield pattern[at:found]
        at = found + 1
        if pattern[at : at + 1] == "%":
            yield "%"
            at += 1
            continue
        precision: int | None = None
        if at >= len(pattern):
            yield ("", None)
            raise EvalError("unexpected end of string")
        if pattern[at] == ".":
            end = at + 1
            while pattern[end : end + 1] in set("0123456789"):
                end += 1
            precision = _precision(pattern, at + 1, end)
            at = end
        letter = pattern[at]
        if letter not in "sdfebxXo":
            raise EvalError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
        yield (letter, precision)
        at += 1
    if at < len(pattern):
        yield pattern[at:]


def _precision(pattern: str, start: int, end: int) -> int:
    before = "could not parse formatting clause: error while parsing precision: "
    if end >= len(pattern):
        raise EvalError(f"{before}could not find end of precision specifier")
    digits = pattern[start:end]
    if not digits:
        raise EvalError(
            f'{before}error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
        )
    if len(digits) > 4 or int(digits) > _MOST_DIGITS:
        raise EvalError(f"{before}{digits[:20]} is more than {_MOST_DIGITS} digits")
    return int(digits)


def format_text(pattern: str, args: list[Any] | ListValue) -> str:
    """Put values into a text."""
    made: list[str] = []
    used = 0
    for clause in clauses(pattern):
        if isinstance(clause, str):
            made.append(clause)
            continue
        if used >= len(args):
            raise EvalError(f"index {used} out of range")
        if clause[0]:
            made.append(_shown(clause[0], clause[1], args[used]))
            _bounded(sum(map(len, made)))
        used += 1
    return "".join(made)


def _shown(letter: str, precision: int | None, value: Any) -> str:
    found = _clause(letter, precision, value)
    if found is None:
        raise EvalError(f"error during formatting: {refusal(letter, type_name(value))}")
    return found


def refusal(letter: str, kind: str) -> str:
    """Say that a clause does not take values of a type."""
    return f"{_WORDS[letter.lower()]}, was given {kind}"


def _clause(letter: str, precision: int | None, value: Any) -> str | None:
    kind = type(value)
    whole = kind in (int, Uint)
    match letter:
        case "s":
            return _string(value)
        case "d":
            return str(int(value)) if whole else None
        case "f" | "e":
            number = _NO_NUMBERS.get(value) if kind is str else value if kind is float else None
            return None if number is None else _number(letter, 6 if precision is None else precision, number)
        case "b":
            return format(int(value), "b") if whole or kind is bool else None
        case "o":
            return format(int(value), "o") if whole else None
        case _:
            return _hex(letter, value)


def _number(letter: str, precision: int, number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return ("∞" if number > 0 else "-∞").rjust(precision if letter == "e" else 0)
    if letter == "f":
        return f"{number:,.{precision}f}"
    head, _, exponent = f"{number:.6e}".partition("e")
    power = f"{'-' if int(exponent) < 0 else ''}{abs(int(exponent)):02}".translate(_RAISED)
    return f"{head}\u00d710{power}".rjust(precision)


def _hex(letter: str, value: Any) -> str | None:
    if type(value) in (int, Uint):
        made = format(int(value), "x")
    elif isinstance(value, str):
        made = value.encode("utf-8", "surrogatepass").hex()
    elif isinstance(value, bytes):
        made = value.hex()
    else:
        return None
    return made.upper() if letter == "X" else made


def _string(value: Any) -> str | None:
    if value is None:
        return "null"
    if isinstance(value, (list, ListValue)):
        return "[" + ", ".join(map(_element, value)) + "]"
    if isinstance(value, MapView):
        pairs = sorted((_element(key), _element(value.find(key))) for key in value)
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    if isinstance(value, (bool, int, float, str, bytes, Duration, Timestamp, TypeValue)):
        return text(value)
    return None


def _element(value: Any) -> str:
    """Show a value inside of a list or map: as it is written in the language."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return go_quoted({math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN"))
        return format(Decimal(value), ".6f")
    made = _string(value)
    if made is None:
        raise EvalError(f"error during formatting: no formatting function for {type_name(value)}")
    if isinstance(value, str):
        return go_quoted(made)
    if isinstance(value, bytes):
        return f"b{go_quoted(made)}"
    if isinstance(value, Duration):
        return f'duration("{made}")'
    return f'timestamp("{made}")' if isinstance(value, Timestamp) else made


def go_quoted(value: str) -> str:
    """Quote a text as Go does."""
    made = ['"']
    simple = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    for character in value:
        code = ord(character)
        if character in '"\\':
            made.append(f"\\{character}")
        elif character in simple:
            made.append(simple[character])
        elif character == " " or character.isprintable():
            made.append(character)
        elif code < 0x80:
            made.append(f"\\x{code:02x}")
        else:
            made.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return "".join([*made, '"'])


def _declare() -> Iterable[Overload]:
    texts: Type = list_of(STRING)
    yield member("charAt", "string_char_at_int", [STRING, INT], STRING, _char_at)
    for name, call in (("indexOf", _index_of), ("lastIndexOf", _last_index_of)):
        yield member(name, f"string_{name}_string", [STRING, STRING], INT, call, traversal)
        yield member(name, f"string_{name}_string_int", [STRING, STRING, INT], INT, call, traversal)
    yield member("lowerAscii", "string_lower_ascii", [STRING], STRING, lambda value: value.translate(_LOWER), _once)
    yield member("upperAscii", "string_upper_ascii", [STRING], STRING, lambda value: value.translate(_UPPER), _once)
    yield member("trim", "string_trim", [STRING], STRING, lambda value: value.strip(_SPACE), _once)
    yield member("replace", "string_replace_string_string", [STRING] * 3, STRING, _replace, _twice)
    yield member("replace", "string_replace_string_string_int", [*[STRING] * 3, INT], STRING, _replace, _twice)
    yield member("split", "string_split_string", [STRING, STRING], texts, _split, _twice)
    yield member("split", "string_split_string_int", [STRING, STRING, INT], texts, _split, _twice)
    yield member("substring", "string_substring_int", [STRING, INT], STRING, _substring, _once)
    yield member("substring", "string_substring_int_int", [STRING, INT, INT], STRING, _substring, _once)
    yield member("join", "list_join", [texts], STRING, _join, _twice_the_result, paid_after=True)
    yield member("join", "list_join_string", [texts, STRING], STRING, _join, _twice_the_result, paid_after=True)
    yield member("format", "string_format", [STRING, list_of(Type("dyn"))], STRING, format_text, _once)
    yield function("strings.quote", "strings_quote", [STRING], STRING, _quote, _once)


LIBRARY: Final[tuple[Overload, ...]] = tuple(_declare())
