"""What `kubectl get` shows of each kind: the columns of its Table.

`cells` has what columns are made of; each other module has the columns of one family of built-in kinds, and `columns`
finds those of a kind. `jsonpath` is how a CustomResourceDefinition says where its columns come from. The cells tell
what an API server tells, word for word, because scripts read them; the descriptions are our own.
"""

from __future__ import annotations

from flyball.controlplane.apiserver.printing.cells import AGE, NAME, Column, age, duration

__all__ = ["AGE", "NAME", "Column", "age", "duration"]
