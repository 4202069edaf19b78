"""CustomResourceDefinitions: what makes kinds come, change and go while the server runs.

In the order in which a definition passes them: `definition` fills in what its author left out, `validation` (with
`structure`, `defaults` and `selectable`) says what is wrong with it, the store keeps it, `names` decides whether its
names are free, `serving` makes the `Kind` of each version, and `registry` keeps the kinds that are served equal to the
definitions that are stored, writes their status, and cleans up after those that go.

What is particular about the objects of custom kinds is in `objects` (metadata, embedded objects) and `versions`
(how an object that is stored in one version is read in another). `columns` are what they look like in a Table.

The room promises: a definition is served before the answer to its creation is sent; a change of a schema holds for the
next request; after a restart, and after a snapshot was restored, exactly what is stored is served.
"""

from __future__ import annotations

from flyball.controlplane.apiserver.crds.registry import Definitions

__all__ = ["Definitions"]
