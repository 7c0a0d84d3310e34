"""For each command that changes something: a change made while it waits for confirmation, so that it must refuse.

A value of one word names a change in tests/integration/commands/test_changed_meanwhile.py.
A value that is a sentence says why there is no such change.
"""

from __future__ import annotations

_NEW = "fails if there is one already: the brokers decide"
_LOOKS_AGAIN = "looks at the cluster before each of its steps, and compares topic ids and cluster id with its journal"
_OWN_FILES = "changes files of this machine alone"
_PROCESSES = "acts on processes, which are known by pid and start time"

CHANGES: dict[str, str] = {
    "topic create": _NEW,
    "topic alter": "topic, config",
    "topic delete": "topic",
    "topic truncate": "topic",
    "topic clone": "topic, config",
    "topic apply": "topic, config",
    "topic reassign apply": "topic, replicas",
    "topic reassign rollback": "topic, replicas",
    "topic reassign cancel": "topic",
    "topic reassign pause": _LOOKS_AGAIN,
    "topic reassign resume": _LOOKS_AGAIN,
    "topic reassign plan": "reads",
    "config set": "topic, config",
    "config unset": "topic, config",
    "leader elect": "topic, replicas",
    "leader balance": "topic, replicas",
    **dict.fromkeys(("feature upgrade", "feature downgrade"), "compares levels (KRaft): features/test_features.py"),
    "broker loggers set": "logger",
    **dict.fromkeys(("broker cordon", "broker uncordon"), "compares as `config set` does, by the same function"),
    "produce": "appends: records go to the topic that has the name, and to no other one once it has begun",
    "consume": "commits as a member of the group: the coordinator compares member and generation",
    "group reset-offsets": "topic, offset",
    "group import": "offset",
    "group delete": "offset, group",
    "group delete-offsets": "offset",
    "group remove-member": "member",
    "capacity": "writes to a topic of its own, whose name nobody else has",
    "playbook run": "each of its steps is a command of this table",
    "playbook resume": "each of its steps is a command of this table",
    "transaction abort": "topic",
    "acl add": _NEW,
    "acl remove": "acl",
    "acl apply": "acl",
    "user add": "user",
    "user remove": "user",
    "quota set": "quota",
    "quota unset": "quota",
    **dict.fromkeys(("cluster create", "cluster start", "cluster warm", "demo"), "makes what is not there"),
    **dict.fromkeys(("cluster stop", "cluster kill", "cluster pause", "cluster unpause"), _PROCESSES),
    "cluster restart": f"{_PROCESSES}; with --rolling it {_LOOKS_AGAIN}",
    **dict.fromkeys(("cluster upgrade", "cluster rollback", "cluster finalize"), f"{_PROCESSES}; it {_LOOKS_AGAIN}"),
    "cluster destroy": "removes the folder that has the cluster's name, under its lock",
    **dict.fromkeys(
        ("validate leader-election", "validate controller-election", "validate rolling-restart",
         "validate unclean-election", "validate broker-loss", "validate zookeeper-loss",
         "validate controller-loss", "validate quorum-loss", "validate all", "validate matrix"),
        "uses topics of its own, and looks at the cluster before each fault",
    ),
    **dict.fromkeys(
        ("quorum add", "quorum remove", "quorum convert", "broker unregister"),
        "plans again after the confirmation, and compares; needs KRaft",
    ),
    **dict.fromkeys(("cluster export", "group export", "history snapshot", "spark snapshot"), "reads"),
    **dict.fromkeys(("context use", "context add", "context import", "context remove"), _OWN_FILES),
    **dict.fromkeys(("segment verify", "spark warm", "spark bundle"), _OWN_FILES),
    **dict.fromkeys(("runtime install", "runtime remove"), _OWN_FILES),
}  # fmt: skip
