"""Writes the package of a machine from its diagram, and keeps it up to date without touching what is the user's.

Promises [fsm.md 5]:

- **no user code is lost, ever**: functions are found by their markers, edited by positions, and everything outside an
  untouched stub stays as it is, byte for byte; what the diagram no longer mentions is kept and reported; a file that
  cannot be parsed is left alone and then nothing is written at all;
- **all or nothing**: everything is computed and checked first, then written through a journal that the next run
  finishes if this one dies;
- **the same bytes from the same input**, on every machine; a file that would not change keeps its time;
- **user code is never imported**.

Reading order:

- `names`, `wanted`: what a diagram asks for; `options`, `places`: where it goes;
- `sourcetext`, `marked`, `imports`, `stubs`, `regions`, `merge`: the incremental update of one file;
- `renames`: a name becomes another in diagram and code;
- `layout`, `machine_module`, `newfiles`, `projectfiles`: the text of new files;
- `journal`: several files written as one;
- `generator`: the plan of a whole package; `report`: what it has to say.
"""

from __future__ import annotations

from flyball.fsm.generate.generator import FilePlan, Plan, journal_of, prepare, project_files, recover
from flyball.fsm.generate.journal import Journal, JournalError, Recovery
from flyball.fsm.generate.options import Options
from flyball.fsm.generate.places import PlaceError
from flyball.fsm.generate.renames import RenameError
from flyball.fsm.generate.sourcetext import SourceProblem

__all__ = [
    "FilePlan",
    "Journal",
    "JournalError",
    "Options",
    "PlaceError",
    "Plan",
    "Recovery",
    "RenameError",
    "SourceProblem",
    "journal_of",
    "prepare",
    "project_files",
    "recover",
]
