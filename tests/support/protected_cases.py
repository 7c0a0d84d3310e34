"""A line for each command that changes a cluster and, in a protected context, asks for the context's name.

TOPIC has three partitions with records, on brokers 1 and 2, and its own retention.ms; the first one is not led by its
preferred leader. SECOND has an open transaction from offset 0. GROUP has commits, MEMBERS has a member. FOLDER has
new.yaml (a topic that does not exist), offsets.json (a group's offsets), plan.json (a reassignment), done.json (a
completed one) and play.yaml (a playbook that creates a topic).
"""

from __future__ import annotations

CLUSTER: dict[str, str] = {
    "topic create": "NEW",
    "topic alter": "TOPIC --partitions 4",
    "topic delete": "TOPIC",
    "topic truncate": "TOPIC --all",
    "topic clone": "TOPIC NEW",
    "topic apply": "-f FOLDER/new.yaml",
    "topic reassign apply": "FOLDER/plan.json",
    "topic reassign rollback": "FOLDER/done.json",
    "topic reassign cancel": "--plan FOLDER/plan.json",
    "config set": "topic/TOPIC retention.ms=1000",
    "config unset": "topic/TOPIC retention.ms",
    "leader elect": "--preferred --topic TOPIC",
    "leader balance": "--topic TOPIC",
    "broker loggers set": "kafka.controller.KafkaController=DEBUG --broker 1",
    "produce": "TOPIC",
    "consume": "TOPIC --group GROUP --exit-eof",
    "group reset-offsets": "GROUP --all-topics --to-latest",
    "group import": "FOLDER/offsets.json",
    "group delete": "GROUP",
    "group delete-offsets": "GROUP --topic TOPIC",
    "group remove-member": "MEMBERS --all",
    "capacity": "--measure --duration 1s",
    "playbook run": "FOLDER/play.yaml",
    "transaction abort": "SECOND --partition 0 --start-offset 0 --force",
}
# With an authorizer. alice has an ACL, a quota and a password.
SECURE: dict[str, str] = {
    "acl add": "'allow pia read topic pia'",
    "acl remove": "'allow alice read topic alice'",
    "acl apply": "-f FOLDER/access.yaml",
    "user add": "pia --password-env ADMIN_PASSWORD",
    "user remove": "alice",
    "quota set": "--user pia producer_byte_rate=1000",
    "quota unset": "--user alice producer_byte_rate",
}
ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(
        ("cluster create", "cluster start", "cluster warm"), "makes or starts processes of this machine's own clusters"
    ),
    **dict.fromkeys(
        ("cluster stop", "cluster restart", "cluster kill", "cluster pause", "cluster unpause", "cluster destroy",
         "cluster upgrade", "cluster finalize", "cluster rollback"),
        "asks by the name of a cluster on this machine: test_protected_contexts.py",
    ),
    **dict.fromkeys(
        ("validate leader-election", "validate controller-election", "validate rolling-restart",
         "validate unclean-election", "validate broker-loss", "validate zookeeper-loss",
         "validate controller-loss", "validate quorum-loss", "validate all", "validate matrix"),
        "needs hooks: tests/integration/validate/test_hooks.py",
    ),
    **dict.fromkeys(("broker cordon", "broker uncordon"), "needs Kafka 4.3; they ask as `config set` does"),
    **dict.fromkeys(
        ("quorum add", "quorum remove", "quorum convert", "broker unregister"),
        "needs KRaft: tests/integration/quorum/test_quorum.py",
    ),
    "cluster export": "reads", "group export": "reads", "topic reassign plan": "reads", "spark snapshot": "reads",
    "history snapshot": "reads",
    **dict.fromkeys(("context use", "context add", "context import", "context remove"), "changes kctl's own config"),
    "topic reassign pause": "stops what was begun and confirmed",
    "playbook resume": "needs a run that was interrupted; it asks as `playbook run` does, by the same function",
    "topic reassign resume": "needs a run that was interrupted: test_protected_contexts.py reads how it asks",
    **dict.fromkeys(("segment verify", "spark warm", "spark bundle"), "changes files of this machine alone"),
    **dict.fromkeys(("runtime install", "runtime remove"), "changes files of this machine alone"),
    **dict.fromkeys(("feature upgrade", "feature downgrade"), "needs KRaft: features/test_features.py"),
    "demo": "makes a cluster of its own and destroys it",
}  # fmt: skip
