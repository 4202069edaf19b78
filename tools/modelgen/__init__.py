"""Makes `flyball.k8s` from the facts that Kubernetes publishes about its own API.

Two steps, each of them a pure function of its input:

1. `facts` reads the Go module `k8s.io/kubernetes` (its OpenAPI documents, its discovery documents and the generated
   Go table behind them) and keeps what is a fact: names, types, formats, defaults, enumerations, list and patch
   semantics, resources with their verbs and short names. Texts are left out. The result is the fact file in
   `src/flyball/k8s/_facts`, which the API server reads too.
2. `render` turns the fact file into one Python module per group and version.

`python -m tools.modelgen` writes the modules, `--check` says which of them are stale, and
`python -m tools.modelgen facts --from DIRECTORY` remakes the fact file. Read in the order facts, names, kinds, render.
"""
