"""Rules about the text of .properties files: names, values, and contradictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from kctl.base.address import AddressProblem, zookeeper_problem
from kctl.base.text import counted
from kctl.doctor.listener_problems import listener_problems
from kctl.doctor.listeners import listeners_of
from kctl.doctor.rule import Evaluate, Issue, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import EffectiveSettings, RuleFacts
from kctl.doctor.rules_sizes import per_broker

_REMOVED_IN_4 = frozenset(
    {
        "broker.id.generation.enable", "control.plane.listener.name", "delegation.token.master.key",
        "auto.include.jmx.reporter", "controlled.shutdown.max.retries", "controlled.shutdown.retry.backoff.ms",
        "inter.broker.protocol.version", "log.message.format.version", "log.message.downconversion.enable",
        "log.message.timestamp.difference.max.ms", "offsets.commit.required.acks", "reserved.broker.max.id",
    }
)  # fmt: skip
_REMOVED_PREFIXES = ("zookeeper.", "password.encoder.")
_ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
_STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - only compared, never written to


def _per_file(judge: Callable[[EffectiveSettings], str | None]) -> Evaluate:
    def evaluate(facts: RuleFacts) -> list[Issue]:
        return grouped_by_message((each.owner, judge(each)) for each in facts.broker_files or ())

    return evaluate


def _per_problem(judge: Callable[[EffectiveSettings], Iterator[str]]) -> Evaluate:
    """Like `_per_file`, for functions that yield any number of messages per file."""

    def evaluate(facts: RuleFacts) -> list[Issue]:
        return grouped_by_message((each.owner, message) for each in facts.broker_files or () for message in judge(each))

    return evaluate


def _unknown(facts: RuleFacts) -> list[Issue]:
    issues = []
    for each in facts.files or ():
        for name, suggestions in each.unknown_keys.items():
            message = f"{name}: did you mean {' or '.join(suggestions)}?" if suggestions else name
            issues.append(Issue(message, (each.path,)))
        if each.stray_lines:
            lines = counted(each.stray_lines, "line")
            message = f"{lines} without a setting name (not shown): end each continued line with a \\"
            issues.append(Issue(message, (each.path,)))
    return issues


def _invalid_values(facts: RuleFacts) -> list[Issue]:
    return [Issue(message, (each.path,)) for each in facts.files or () for message in each.invalid_values.values()]


def _outdated(facts: RuleFacts) -> list[Issue]:
    return [Issue(message, (each.path,)) for each in facts.files or () for message in each.outdated]


def _readable_secrets(facts: RuleFacts) -> list[Issue]:
    return [
        Issue(f"mode {each.mode:04o}, contains {', '.join(each.secret_keys)}", (each.path,))
        for each in facts.files or ()
        if each.secret_keys and each.mode & 0o044
    ]


def _zookeeper_connect(settings: EffectiveSettings) -> str | None:
    """Return the problem with zookeeper.connect as ConnectStringParser reads it."""
    text = settings.text("zookeeper.connect")
    if text is None:
        return None
    problem = zookeeper_problem(text)
    path = text.strip().partition("/")[2]
    if problem is None and path and (path.startswith("/") or path.endswith("/")):
        problem = AddressProblem("the chroot has an empty path component", "the broker does not start")
    return None if problem is None else f"zookeeper.connect={text}: {problem.what} ({problem.hint})"


def _dirs(settings: EffectiveSettings) -> list[str]:
    return [] if settings.is_hidden("log.dirs") else settings.items("log.dirs") or settings.items("log.dir")


def _log_dirs(settings: EffectiveSettings) -> Iterator[str]:
    dirs = [str(PurePosixPath(each)) for each in _dirs(settings)]
    yield from (f"log.dirs: {each} is listed twice" for each in sorted({d for d in dirs if dirs.count(d) > 1}))
    for inner in sorted(set(dirs)):
        yield from (f"log.dirs: {inner} is inside {outer}" for outer in sorted(set(dirs)) if _is_inside(inner, outer))
    if "log.dir" in settings.explicit and "log.dirs" in settings.explicit:
        yield "log.dir is ignored because log.dirs is set"


def _is_inside(inner: str, outer: str) -> bool:
    return PurePosixPath(outer) in PurePosixPath(inner).parents


def _temporary(settings: EffectiveSettings) -> str | None:
    dirs = [each for each in _dirs(settings) if any(each == root or _is_inside(each, root) for root in _TEMPORARY)]
    return f"log dirs in {', '.join(dirs)}" if dirs else None


def _roles(settings: EffectiveSettings) -> Iterator[str]:
    """Yield contradictions between KRaft and ZooKeeper settings, and missing settings of either mode."""
    if not settings.is_hidden("process.roles"):
        yield from _roles_and_zookeeper(settings, settings.items("process.roles"))
    node, broker = settings.number("node.id"), settings.number("broker.id")
    if {"node.id", "broker.id"} <= settings.explicit and None not in (node, broker) and node != broker:
        yield f"node.id={node}, broker.id={broker}: they must be equal"


def _roles_and_zookeeper(settings: EffectiveSettings, roles: list[str]) -> Iterator[str]:
    connect = _is_set(settings, "zookeeper.connect")
    migrating = settings.boolean("zookeeper.metadata.migration.enable") is not False
    # Since 4.0, zookeeper.connect is an unknown setting. The rule gone-in-4 reports it.
    only_kraft = settings.releases is not None and settings.releases.lowest >= (4, 0)
    if only_kraft and not roles:
        yield "process.roles is not set; since 4.0 the broker does not start without it"
    if not only_kraft and roles and connect and not migrating:
        yield "process.roles and zookeeper.connect without zookeeper.metadata.migration.enable=true"
    if not only_kraft and not roles and not connect:
        yield "neither process.roles nor zookeeper.connect is set"
    authorizer = settings.text("authorizer.class.name")
    if (roles or only_kraft) and authorizer == _ACL_AUTHORIZER:
        yield f"authorizer.class.name={authorizer} requires ZooKeeper; with KRaft, use StandardAuthorizer"
    if not only_kraft and connect and not roles and not migrating and authorizer == _STANDARD_AUTHORIZER:
        yield f"authorizer.class.name={authorizer} requires KRaft; with ZooKeeper, use AclAuthorizer"
    if roles:
        yield from _kraft(settings, roles)


def _is_set(settings: EffectiveSettings, *names: str) -> bool:
    """Return True if one of the settings is set, even to an undisclosed value."""
    return any(settings.text(name) or settings.is_hidden(name) for name in names)


def _kraft(settings: EffectiveSettings, roles: list[str]) -> Iterator[str]:
    if not {"node.id", "broker.id"} & settings.explicit:
        yield "process.roles requires node.id"
    if not _is_set(settings, "controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        yield "process.roles requires controller.quorum.voters or controller.quorum.bootstrap.servers"
    names = [name.upper() for name in settings.items("controller.listener.names")]
    if not _is_set(settings, "controller.listener.names"):
        yield "process.roles requires controller.listener.names"
    bound = {each.name for each in listeners_of(settings)}
    if settings.is_hidden("listeners"):
        return
    if "controller" in roles and names and not bound & set(names):
        yield f"listeners contains none of controller.listener.names={','.join(names)}"
    if roles == ["broker"] and bound & set(names):
        controllers = ", ".join(sorted(bound & set(names)))
        yield f"listeners contains the controller listener {controllers}, but this node is not a controller"


def _combined(settings: EffectiveSettings) -> str | None:
    return "process.roles=broker,controller" if len(settings.items("process.roles")) > 1 else None


def _duplicate_ids(facts: RuleFacts) -> list[Issue]:
    files: dict[int, list[str]] = {}
    for each in facts.broker_files or ():
        node = each.number("node.id") if "node.id" in each.explicit else each.number("broker.id")
        if node is not None and node >= 0:
            files.setdefault(node, []).append(each.owner)
    return [
        Issue(f"{len(names)} files have id {node}", tuple(names)) for node, names in files.items() if len(names) > 1
    ]


def _shared_log_dirs(facts: RuleFacts) -> list[Issue]:
    """Report a log dir that two brokers of the same machine share.

    Files with a port in common belong to different machines. Files with hidden listeners may, so they are skipped.
    """
    files = [each for each in facts.broker_files or () if not each.is_hidden("listeners")]
    issues = []
    for number, one in enumerate(files):
        for other in files[number + 1 :]:
            ports = {each.port for each in listeners_of(one)} & {each.port for each in listeners_of(other)}
            shared = sorted(set(one.items("log.dirs")) & set(other.items("log.dirs")))
            if shared and not ports:
                issues.append(Issue(f"both use {', '.join(shared)} in log.dirs", (one.owner, other.owner)))
    return issues


def _removed_in_4(settings: EffectiveSettings) -> str | None:
    names = sorted(name for name in settings.explicit if name in _REMOVED_IN_4 or name.startswith(_REMOVED_PREFIXES))
    return ", ".join(names) or None


_F = ("broker_files",)

RULES = (
    Rule(
        "unknown-setting", Severity.WARNING, "Kafka does not know the setting", ("files",),
        "Kafka logs a warning at startup and ignores the setting, so the intended setting keeps its default. (Plugins "
        "have their own settings; this check knows those of 3.9.2.)",
        "org.apache.kafka.common.config.AbstractConfig.logUnused",
        "Correct the name, unless the setting belongs to a plugin.",
        _unknown,
    ),
    Rule(
        "outdated-setting", Severity.WARNING, "The setting was removed from Kafka", ("files",),
        "Kafka ignores a removed setting, which then keeps its default, and rejects a removed value. Old guides and "
        "examples still contain both.",
        "Kafka's upgrade notes, 0.9 to 4.0", "Use the replacement.", _outdated, Versions(since=(0, 9)),
    ),
    Rule(
        "wrong-value", Severity.ERROR, "Kafka rejects the value", ("files",),
        "The broker or client does not start (ConfigException).",
        "org.apache.kafka.common.config.ConfigDef (3.9.2)", "Correct the value.", _invalid_values,
    ),
    Rule(
        "readable-secrets", Severity.ERROR, "Other users can read a file with passwords", ("files",),
        "Everyone with an account on the machine can read the password.",
        "The mode of the file", "Run `chmod 600 FILE`, or use config providers (KIP-297).", _readable_secrets,
    ),
    Rule(
        "listener-contradictions", Severity.ERROR, "Listener settings contradict each other", _F,
        "The broker does not start, or directs clients to an address that does not work.",
        "kafka.server.KafkaConfig.validateValues",
        "Give every listener a protocol in listener.security.protocol.map and an address that clients can use. Use "
        "only these listeners in inter.broker.listener.name and advertised.listeners.",
        _per_problem(listener_problems),
    ),
    Rule(
        "zookeeper-connect", Severity.ERROR, "zookeeper.connect does not mean what was intended", ("brokers",),
        "Everything after the first slash is the chroot. With a chroot after each server, the broker knows only the "
        "first server, and stores its data in a node that other brokers and tools do not use.",
        "org.apache.zookeeper.client.ConnectStringParser",
        "List the servers separated by commas, then the chroot once: zk1:2181,zk2:2181,zk3:2181/kafka. If the cluster "
        "runs with the wrong chroot, move its nodes before you correct the setting.",
        per_broker(_zookeeper_connect),
        Versions(before=(4, 0)),
    ),
    Rule(
        "log-dirs-contradictions", Severity.ERROR, "Log dirs contradict each other", _F,
        "The broker locks each log dir. A log dir inside another one looks like a damaged partition.",
        "kafka.log.LogManager", "Use one path per disk, none inside another.", _per_problem(_log_dirs),
    ),
    Rule(
        "temporary-log-dirs", Severity.ERROR, "Data is stored in a temporary directory", ("brokers",),
        "Machines clear /tmp at a restart, or periodically. The default is /tmp/kafka-logs.",
        "Kafka's documentation, log.dir", "Set log.dirs to dedicated disks.", per_broker(_temporary),
    ),
    Rule(
        "role-contradictions", Severity.ERROR, "KRaft and ZooKeeper settings are mixed", _F,
        "The broker does not start, or starts in the wrong mode.",
        "kafka.server.KafkaConfig.validateValues; KIP-866 for migrations",
        "Use either KRaft or ZooKeeper. Since 4.0 there is only KRaft; 3.9 is the release to migrate from.",
        _per_problem(_roles),
    ),
    Rule(
        "combined-roles", Severity.INFO, "One process is both broker and controller", ("brokers",),
        "Load on the broker slows down the quorum, and neither role can be restarted or upgraded alone. This mode is "
        "meant for development.",
        "Kafka's documentation, \"KRaft, Process Roles\"", "Run dedicated controllers in production.",
        per_broker(_combined),
        Versions(since=(3, 0)),
    ),
    Rule(
        "same-broker-ids", Severity.ERROR, "Several brokers have the same id", _F,
        "The second broker does not start, or replaces the first one in the cluster.",
        "kafka.zk.KafkaZkClient.registerBroker", "Give each broker its own id.", _duplicate_ids,
    ),
    Rule(
        "shared-log-dirs", Severity.ERROR, "Two brokers on one machine share a log dir", _F,
        "The second broker does not start, because the log dir is locked. (This check assumes "
        "that files with the same port belong to different machines.)",
        "kafka.log.LogManager.lockLogDirs", "Give each broker its own log dirs.", _shared_log_dirs,
    ),
    Rule(
        "gone-in-4", Severity.INFO, "Kafka 4 does not have these settings", _F,
        "4.3.1 ignores all of them. With zookeeper.connect but without process.roles, a broker does not start.",
        "Comparison of 3.9.2 and 4.3.1",
        "Migrate from ZooKeeper before the upgrade. With the upgrade, use the new names "
        "(delegation.token.secret.key, log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms) and "
        "remove the rest.",
        _per_file(_removed_in_4),
        Versions(since=(3, 5)),
    ),
)  # fmt: skip
