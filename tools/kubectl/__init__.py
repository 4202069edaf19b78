"""What kubectl prints against a real kube-apiserver, and against the embedded one.

A script (`tests/integration/kubectl/scripts/*.yaml`) is a list of commands with the files that they read. `play` runs
one against a server and writes a transcript: each command, what it printed, its exit code, with all that differs from
run to run masked. `python -m tools.kubectl record` keeps the transcripts of a real server; the tests play the same
scripts against the embedded one and compare.

A script with `nodes` is about workloads: it is recorded from a real control plane with its controllers, and played
against the embedded one with ours; on both, our simulated kubelet plays the Pods. A step with `until` is asked again
until its output matches.
"""
