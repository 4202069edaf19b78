"""Text to model. `parse_text` reads every diagram of a text, `load` those of a file.

Promises:

* no text makes it fail: what cannot be understood becomes a finding with line and column, never an exception;
* nothing is dropped silently: a line is behaviour, known layout, a note, a comment, or has a finding;
* the time it takes is proportional to the length of the text.

Reading order: `sources` (where diagrams are in a file), `lines`, `reader` (lines to statements; `arrows`, `labels`,
`declarations`, `notes`, `layout` each know one kind of line), `scopes` (levels and borders), `titles`, `builder`
(statements to model), `codes` (the findings), `text` (the front).
"""

from flyball.fsm.parse.codes import CODES, Report, silenced
from flyball.fsm.parse.text import DiagramError, Document, ParseResult, load, parse_text

__all__ = ["CODES", "DiagramError", "Document", "ParseResult", "Report", "load", "parse_text", "silenced"]
