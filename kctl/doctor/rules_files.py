"""Rules about what stands in .properties files: names, values, and what contradicts what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from kctl.base.address import AddressProblem, zookeeper_problem
from kctl.base.text import counted
from kctl.doctor.listeners import listeners_of
from kctl.doctor.rule import Evaluate, Found, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import RuleFacts, Settings
from kctl.doctor.rules_listeners import listener_problems
from kctl.doctor.rules_sizes import per_broker

_GONE_IN_4 = frozenset(
    {
        "broker.id.generation.enable", "control.plane.listener.name", "delegation.token.master.key",
        "auto.include.jmx.reporter", "controlled.shutdown.max.retries", "controlled.shutdown.retry.backoff.ms",
        "inter.broker.protocol.version", "log.message.format.version", "log.message.downconversion.enable",
        "log.message.timestamp.difference.max.ms", "offsets.commit.required.acks", "reserved.broker.max.id",
    }
)  # fmt: skip
_GONE_PREFIXES = ("zookeeper.", "password.encoder.")
_ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
_STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - nothing is written there


def _per_file(judge: Callable[[Settings], str | None]) -> Evaluate:
    def evaluate(facts: RuleFacts) -> list[Found]:
        return grouped_by_message((each.where, judge(each)) for each in facts.broker_files or ())

    return evaluate


def _per_problem(judge: Callable[[Settings], Iterator[str]]) -> Evaluate:
    """Several things can be said of one file."""

    def evaluate(facts: RuleFacts) -> list[Found]:
        return grouped_by_message((each.where, said) for each in facts.broker_files or () for said in judge(each))

    return evaluate


def _unknown(facts: RuleFacts) -> list[Found]:
    found = []
    for each in facts.files or ():
        for name, meant in each.unknown.items():
            found.append(Found(f"{name}: did you mean {' or '.join(meant)}?" if meant else name, (each.path,)))
        if each.stray_lines:
            lines = counted(each.stray_lines, "line")
            said = (
                f"{lines} without a setting's name, not shown: a value that goes on needs a \\ at the end of its line"
            )
            found.append(Found(said, (each.path,)))
    return found


def _wrong(facts: RuleFacts) -> list[Found]:
    return [Found(said, (each.path,)) for each in facts.files or () for said in each.wrong.values()]


def _outdated(facts: RuleFacts) -> list[Found]:
    return [Found(said, (each.path,)) for each in facts.files or () for said in each.outdated]


def _readable(facts: RuleFacts) -> list[Found]:
    return [
        Found(f"mode {each.mode:04o}, with {', '.join(each.secrets)}", (each.path,))
        for each in facts.files or ()
        if each.secrets and each.mode & 0o044
    ]


def _zookeeper_connect(settings: Settings) -> str | None:
    """Return what is wrong with zookeeper.connect, as ConnectStringParser reads it."""
    text = settings.text("zookeeper.connect")
    if text is None:
        return None
    problem = zookeeper_problem(text)
    path = text.strip().partition("/")[2]
    if problem is None and path and (path.startswith("/") or path.endswith("/")):
        problem = AddressProblem("the chroot has an empty part", "a broker does not start with it")
    return None if problem is None else f"zookeeper.connect={text}: {problem.what} ({problem.hint})"


def _dirs(settings: Settings) -> list[str]:
    return [] if settings.hidden("log.dirs") else settings.items("log.dirs") or settings.items("log.dir")


def _log_dirs(settings: Settings) -> Iterator[str]:
    dirs = [str(PurePosixPath(each)) for each in _dirs(settings)]
    yield from (f"log.dirs: {each} twice" for each in sorted({d for d in dirs if dirs.count(d) > 1}))
    for inner in sorted(set(dirs)):
        yield from (f"log.dirs: {inner} lies in {outer}" for outer in sorted(set(dirs)) if _within(inner, outer))
    if "log.dir" in settings.given and "log.dirs" in settings.given:
        yield "log.dir and log.dirs: only log.dirs counts"


def _within(inner: str, outer: str) -> bool:
    return PurePosixPath(outer) in PurePosixPath(inner).parents


def _temporary(settings: Settings) -> str | None:
    found = [each for each in _dirs(settings) if any(each == root or _within(each, root) for root in _TEMPORARY)]
    return f"log dirs in {', '.join(found)}" if found else None


def _roles(settings: Settings) -> Iterator[str]:
    """KRaft and ZooKeeper, and what each of them needs."""
    if not settings.hidden("process.roles"):
        yield from _roles_and_zookeeper(settings, settings.items("process.roles"))
    node, broker = settings.number("node.id"), settings.number("broker.id")
    if {"node.id", "broker.id"} <= settings.given and None not in (node, broker) and node != broker:
        yield f"node.id={node}, broker.id={broker}: they have to be the same"


def _roles_and_zookeeper(settings: Settings, roles: list[str]) -> Iterator[str]:
    connect = _is_set(settings, "zookeeper.connect")
    migrating = settings.truth("zookeeper.metadata.migration.enable") is not False
    # There zookeeper.connect is a name like any other that is not known: `gone-in-4` tells it.
    only_kraft = settings.releases is not None and settings.releases.lowest >= (4, 0)
    if only_kraft and not roles:
        yield "process.roles is not set: since 4.0 a broker does not start without it"
    if not only_kraft and roles and connect and not migrating:
        yield "process.roles and zookeeper.connect, without zookeeper.metadata.migration.enable=true"
    if not only_kraft and not roles and not connect:
        yield "neither process.roles nor zookeeper.connect"
    authorizer = settings.text("authorizer.class.name")
    if (roles or only_kraft) and authorizer == _ACL_AUTHORIZER:
        yield f"authorizer.class.name={authorizer} needs ZooKeeper; with KRaft it is StandardAuthorizer"
    if not only_kraft and connect and not roles and not migrating and authorizer == _STANDARD_AUTHORIZER:
        yield f"authorizer.class.name={authorizer} needs KRaft; with ZooKeeper it is AclAuthorizer"
    if roles:
        yield from _kraft(settings, roles)


def _is_set(settings: Settings, *names: str) -> bool:
    """Whether one of them is set, to whatever."""
    return any(settings.text(name) or settings.hidden(name) for name in names)


def _kraft(settings: Settings, roles: list[str]) -> Iterator[str]:
    if not {"node.id", "broker.id"} & settings.given:
        yield "process.roles needs node.id"
    if not _is_set(settings, "controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        yield "process.roles needs controller.quorum.voters or controller.quorum.bootstrap.servers"
    names = [name.upper() for name in settings.items("controller.listener.names")]
    if not _is_set(settings, "controller.listener.names"):
        yield "process.roles needs controller.listener.names"
    bound = {each.name for each in listeners_of(settings)}
    if settings.hidden("listeners"):
        return
    if "controller" in roles and names and not bound & set(names):
        yield f"listeners has none of controller.listener.names={','.join(names)}"
    if roles == ["broker"] and bound & set(names):
        yield f"listeners has the controllers' {', '.join(sorted(bound & set(names)))}, and this is no controller"


def _combined(settings: Settings) -> str | None:
    return "process.roles=broker,controller" if len(settings.items("process.roles")) > 1 else None


def _same_ids(facts: RuleFacts) -> list[Found]:
    files: dict[int, list[str]] = {}
    for each in facts.broker_files or ():
        node = each.number("node.id") if "node.id" in each.given else each.number("broker.id")
        if node is not None and node >= 0:
            files.setdefault(node, []).append(each.where)
    return [Found(f"id {node} in {len(names)} files", tuple(names)) for node, names in files.items() if len(names) > 1]


def _shared_log_dirs(facts: RuleFacts) -> list[Found]:
    """Files that may be of one machine: with the same port they cannot be."""
    files = list(facts.broker_files or ())
    files = [each for each in files if not each.hidden("listeners")]  # which may be of different machines, or not
    found = []
    for number, one in enumerate(files):
        for other in files[number + 1 :]:
            ports = {each.port for each in listeners_of(one)} & {each.port for each in listeners_of(other)}
            same = sorted(set(one.items("log.dirs")) & set(other.items("log.dirs")))
            if same and not ports:
                found.append(Found(f"log.dirs: {', '.join(same)} in both", (one.where, other.where)))
    return found


def _gone(settings: Settings) -> str | None:
    names = sorted(name for name in settings.given if name in _GONE_IN_4 or name.startswith(_GONE_PREFIXES))
    return ", ".join(names) or None


_F = ("broker_files",)

RULES = (
    Rule(
        "unknown-setting", Severity.WARNING, "A name that Kafka does not know", ("files",),
        "Kafka logs a line at start and goes on without it: the setting that was meant keeps its default. (Plugins "
        "have "
        "names of their own; those of 3.9.2 are known here.)",
        "org.apache.kafka.common.config.AbstractConfig.logUnused", "Correct the name, or leave it to its plugin.",
        _unknown,
    ),
    Rule(
        "outdated-setting", Severity.WARNING, "A setting of older releases", ("files",),
        "It is ignored (a value: refused): what was meant keeps its default. Notes and examples of many years ago are "
        "still copied.",
        "Kafka's upgrade notes, 0.9 to 4.0", "Write what took its place.", _outdated, Versions(since=(0, 9)),
    ),
    Rule(
        "wrong-value", Severity.ERROR, "A value that Kafka does not take", ("files",),
        "A broker or client does not start with it: ConfigException.",
        "org.apache.kafka.common.config.ConfigDef (3.9.2)", "Correct the value.", _wrong,
    ),
    Rule(
        "readable-secrets", Severity.ERROR, "Others can read a file with passwords", ("files",),
        "Everybody who has an account on that machine has the password.",
        "The file's mode", "chmod 600 FILE; or take passwords from elsewhere (KIP-297, config providers).", _readable,
    ),
    Rule(
        "listener-contradictions", Severity.ERROR, "Listeners contradict each other", _F,
        "A broker does not start with them, or clients are given an address that leads nowhere.",
        "kafka.server.KafkaConfig.validateValues",
        "Give every listener a protocol in the map, and an address that clients can use; name only those in "
        "inter.broker.listener.name and advertised.listeners.",
        _per_problem(listener_problems),
    ),
    Rule(
        "zookeeper-connect", Severity.ERROR, "ZooKeeper's address is not what was meant", ("brokers",),
        "Everything after the first slash is the chroot: with a chroot after each server, a broker knows only the "
        "first server, and keeps its data in a node that other brokers and tools do not look for.",
        "org.apache.zookeeper.client.ConnectStringParser",
        "Servers separated by commas, then the chroot once: zk1:2181,zk2:2181,zk3:2181/kafka. If a cluster runs with "
        "the wrong chroot, move its nodes before you correct it.",
        per_broker(_zookeeper_connect),
        Versions(before=(4, 0)),
    ),
    Rule(
        "log-dirs-contradictions", Severity.ERROR, "Log dirs contradict each other", _F,
        "Each is locked by its broker, and a log dir within another looks like a damaged partition.",
        "kafka.log.LogManager", "One path for each disk, beside each other.", _per_problem(_log_dirs),
    ),
    Rule(
        "temporary-log-dirs", Severity.ERROR, "Data in a folder that is cleared", ("brokers",),
        "The default is /tmp/kafka-logs: machines clear /tmp at a restart, or while they run.",
        "Kafka's documentation, log.dir", "log.dirs on disks of their own.", per_broker(_temporary),
    ),
    Rule(
        "role-contradictions", Severity.ERROR, "KRaft and ZooKeeper are mixed up", _F,
        "A broker does not start, or starts as something else than was meant.",
        "kafka.server.KafkaConfig.validateValues; KIP-866 for migrations",
        "Decide on one of them; since 4.0 there is KRaft alone, to which 3.9 migrates.",
        _per_problem(_roles),
    ),
    Rule(
        "combined-roles", Severity.INFO, "One process is broker and controller", ("brokers",),
        "Load of the broker slows the quorum down, and neither can be restarted or upgraded alone: for development.",
        "Kafka's documentation, «KRaft, Process Roles»", "Controllers of their own in production.",
        per_broker(_combined),
        Versions(since=(3, 0)),
    ),
    Rule(
        "same-broker-ids", Severity.ERROR, "Several brokers have one id", _F,
        "The second does not start, or takes the first one's place.",
        "kafka.zk.KafkaZkClient.registerBroker", "An id of its own for each.", _same_ids,
    ),
    Rule(
        "shared-log-dirs",
        Severity.ERROR,
        "Two brokers of one machine share a log dir",
        _F,
        "The second does not start: the log dir is locked. (Files with a port in common are of different machines.)",
        "kafka.log.LogManager.lockLogDirs",
        "A folder of its own for each broker.",
        _shared_log_dirs,
    ),
    Rule(
        "gone-in-4", Severity.INFO, "Settings that Kafka 4 does not have", _F,
        "4.3.1 has none of them: what they set is ignored there; and with zookeeper.connect alone, without "
        "process.roles, a broker does not start.",
        "3.9.2 and 4.3.1 compared", "Migrate from ZooKeeper before the upgrade; with it write what took a name's place "
        "(delegation.token.secret.key, log.message.timestamp.before.max.ms and …after.max.ms) and remove the rest.",
        _per_file(_gone),
        Versions(since=(3, 5)),
    ),
)  # fmt: skip
