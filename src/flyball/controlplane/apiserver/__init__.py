"""The embedded API server: a pipeline that can be read from top to bottom.

    connection      http                         (or flyball.controlplane.inprocess)
    who             authn
    route           server, request              what the path means, and who answers it
    negotiation     negotiation                  the form of the answer
    options         options                      what the request says beside its body
    decode          body                         JSON, YAML, protobuf -> plain values
    shape           core                         prune, drop nulls, default
    change          patching, patch/, apply/     patches, server-side apply, managed fields
    prepare         writing, deleting, preparing what only the server sets, what an endpoint does not write
    admit           core.ask, admission/         who may still change or refuse
    judge           core.judge, rules/           what is wrong with the object
    commit          store/                       one revision, optimistic, then seen by all
    encode          render, tables               stored bytes -> answers

`kinds` has the one description per kind from which routes, `discovery`, `openapi`, tables and handlers follow; built-in
kinds (`builtin`, `strategies`, `defaults`, `conversions`) and custom ones (`crds/`) are the same thing to the rest.
`reading` and `watching` are the other half: they join stored bytes. Parts of objects that have an address of their own
are in `subresources` and `podparts`. `status` has every failure.

The room needs nothing of Flyball but `api`, the facts of `k8s`, and the clock.
"""
