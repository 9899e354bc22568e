"""Names of this world, and texts that look like a name, a number or a UUID and are not quite."""

from __future__ import annotations

from tests.fuzz.world import AGGREGATE, BIG, CONSUMER, HOST, NEWCOMER, NUMA, POOL, SPARE

KNOWN = (
    *(HOST, NUMA, POOL, SPARE, CONSUMER, NEWCOMER, AGGREGATE, "host", "numa", "project"),
    *("VCPU", "DISK_GB", "MEMORY_MB", "CUSTOM_HELD", "CUSTOM_IDLE", "CUSTOM_WORN", "CUSTOM_LOOSE"),
    *("MISC_SHARES_VIA_AGGREGATE", "HW_NUMA_ROOT", "CUSTOM_NEW", "INSTANCE", "MIGRATION"),
    *(BIG, "memory", "Kind", "30G", "GtEq", "NotIn"),
)
UUIDS = (
    HOST.upper(),
    HOST.replace("-", ""),
    f"{{{HOST}}}",
    f"urn:uuid:{HOST}",
    f" {HOST}",
    f"{HOST}\n",
    HOST[:-1],
    f"{HOST}0",
    HOST.replace("0", "g"),
    HOST.replace("a", "\uff41"),
    HOST.replace("0", "\u0660"),
    "00000000-0000-0000-0000-000000000000",
    "-".join(NUMA.replace("-", "")),
)
WORDS = (
    *("", " ", "0", "-1", "true", "null", "None", "in:", "!", "!!VCPU", ":", ",", "."),
    *("VCPU", "vcpu", "VCPU ", "VCPU\n", "CUSTOM_", "CUSTOM_A\n", "CUSTOM_A-B", "custom_a"),
    *("CUSTOM_" + "A" * 248, "CUSTOM_" + "A" * 249, "x" * 200, "x" * 201, "x" * 256),
    *("x" * 5000, "CUSTOM_\u00c9", "\u00e9", "e\u0301", "\U0001f600", "\u202e", "\ufeff"),
    *("\0", "a\0b", "CUSTOM_\0", "\ud800", "a\udfffb", "\x7f", "\r\n", "\t"),
    *("'; DROP TABLE providers; --", "%s%n", "%00", "{0}", "../..", "<b>", "\\", '"'),
    *("UNKNOWN", "all"),
)
NAMES = (*UUIDS, *WORDS)
