"""The embedded cluster: a Kubernetes API that starts in a moment, with nothing but Python.

`apiserver` is the API server; it needs nothing of the framework but `api`. `controllers` are the small loops around it:
garbage, namespaces, accounts, events. `cluster` puts both together.
"""
