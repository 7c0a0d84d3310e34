"""The change that each level of a feature brings, in one line.

Sources: the KIPs that the lines name, and Kafka's MetadataVersion and …Version classes, whose methods (e.g.
isCidrAclSupported, fetchRequestVersion) return what a level enables.
"""

from __future__ import annotations

_METADATA = {
    1: "first level of KRaft (KIP-500)",
    2: "topic ids in Fetch (KIP-516)",
    3: "leader recovery after an unclean election (KIP-704)",
    4: "metadata.version as a feature (KIP-778)",
    5: "no-op records in the metadata log (KIP-835)",
    6: "one record for changed broker registrations",
    7: "controlled shutdown in broker registrations (KIP-841)",
    8: "migration from ZooKeeper (KIP-866)",
    9: "tiered storage (KIP-405)",
    10: "stale replicas cannot join the ISR (KIP-903)",
    11: "SCRAM users (KIP-900)",
    12: "no new leader epoch when the ISR shrinks",
    13: "metadata transactions (KIP-868)",
    14: "delegation tokens",
    15: "registration of controllers (KIP-919)",
    16: "reserved, without effect",
    17: "several log dirs per broker (KIP-858)",
    18: "reserved, without effect",
    19: "Fetch and Produce return the new leader (KIP-951)",
    20: "no change",
    21: "basis of kraft.version 1 (KIP-853); offsets of tiered data (KIP-1005)",
    22: "basis of group.version 1 (KIP-848)",
    23: "records of eligible leader replicas (KIP-966)",
    24: "basis of transaction.version 2 (KIP-890)",
    25: "asynchronous ListOffsets for tiered topics (KIP-1075)",
    26: "basis of eligible.leader.replicas.version 1 (KIP-966)",
    27: "faster propagation of the high watermark (KIP-1166)",
    28: "basis of share.version 1 (KIP-932)",
    29: "basis of streams.version 1 (KIP-1071); offsets of pending uploads (KIP-1023)",
    30: "cordoned log dirs (KIP-1066)",
    31: "basis of share.version 2 (KIP-1191)",
    32: "ACLs with CIDR ranges as hosts (KIP-1276)",
    33: "unregistering controllers (KIP-1312)",
}

TEXTS: dict[str, dict[int, str]] = {
    "metadata.version": _METADATA,
    "kraft.version": {
        0: "static voters, from controller.quorum.voters",
        1: "dynamic voters: add and remove controllers (KIP-853)",
    },
    "transaction.version": {
        1: "tagged fields in the transaction log (KIP-890)",
        2: "a new producer epoch per transaction: no hanging transactions (KIP-890)",
    },
    "group.version": {1: "consumer groups assigned by the broker (KIP-848)"},
    "eligible.leader.replicas.version": {1: "eligible leader replicas: fewer unclean elections (KIP-966)"},
    "share.version": {1: "share groups (KIP-932)", 2: "dead-letter queues of share groups (KIP-1191)"},
    "streams.version": {1: "streams groups (KIP-1071)"},
}
