"""Paths and query strings gone wrong, from those of valid requests.

Everything stays within what may appear in a request line; bytes that may not are for
test_malformed.py.
"""

from __future__ import annotations

from urllib.parse import quote

from hypothesis import strategies as st

from tests.fuzz.names import NAMES
from tests.fuzz.routes import CALLS, Call, Query
from tests.fuzz.world import AGGREGATE, HOST

AMOUNTS = (
    *("VCPU", "VCPU:", ":1", "VCPU:0", "VCPU:-1", "VCPU:+1", "VCPU:1.0", "VCPU:1e3", "VCPU:0x1"),
    *("VCPU:1:2", "VCPU: 1", "VCPU:1 ", "VCPU:1_0", "VCPU:\u0661", "VCPU:\u00b2", "VCPU:NaN"),
    *(f"VCPU:{2**31}", f"VCPU:{2**63}", f"VCPU:{10**40}", "VCPU:" + "9" * 5000, "VCPU:1,VCPU:2"),
    *("VCPU:1,", ",VCPU:1", "vcpu:1", "CUSTOM_NONE:1", "VCPU:1;DISK_GB:1", "VCPU=1", "VCPU\0:1"),
)
CONDITIONS = (
    *("in:", "!in:", "in:,", "!", "!!", "in:!CUSTOM_WORN", "!in:CUSTOM_WORN", "in:in:CUSTOM_WORN"),
    *("CUSTOM_WORN,", "CUSTOM_WORN,CUSTOM_WORN", "CUSTOM_WORN,!CUSTOM_WORN", "CUSTOM_NONE"),
    *(f"in:{AGGREGATE},", f"!{AGGREGATE}", f"in:{AGGREGATE},x", f"!in:{AGGREGATE}", HOST),
    *("_CPU", "_CPU,_CPU", "CPU", ",", "_CPU,!_NODE", "!_CPU", "_NONE", "", "isolate", "none"),
    *("startswith:", "startswith:%", "startswith:_", "contains:A", "in:,,", "startswith:CUSTOM_\0"),
    *("0", "-1", "1", "1.0", "1e9", "\u0661", "1_0", " 1", "999999999999999999999", "9" * 5000),
    *("true", "false", "TRUE", "yes"),
    *("memory>=", "memory>=30G,", "memory>=much", "a in ()", "a in (b", 'a="b', "a==b", "!", "!!a"),
    *(
        "=",
        ",,",
        "(",
        "a b",
        "a in b",
        '"',
        '""',
        'a="\\',
        "a>" + "9" * 5000,
        "k" * 256,
        "a," * 900,
    ),
    *("big.numa", "BIG.NUMA", "new.class", "nothing", "..", "a" * 60),
)
KEYS = (
    *("resources", "required", "member_of", "in_tree", "group_policy", "limit", "same_subtree"),
    *("root_required", "root_member_of", "isolate", "name", "uuid", "associated", "project_id"),
    *("user_id", "consumer_type", "resources1", "resources0", "resources01", "resources_CPU"),
    *(
        "attributes",
        "attributes_CPU",
        "attributes1",
        "class",
        "class_CPU",
        "class_",
        "node",
        "host",
    ),
    *("required_CPU", "member_of_CPU", "in_tree_CPU", "required_NODE", "resources_" + "A" * 63),
    *("resources_" + "A" * 64, "resources_\u00e9", "resources-1", "resources ", "Resources"),
    *("resources\0", "required1_", "in_tree$S", "", "unknown", "__class__", "root_in_tree"),
)
FRAGMENTS = (
    *("%", "%z", "%zz=1", "%00=%00", "%ff=%ff", "name=%ff%fe", "name=%ed%a0%80", "name=%u0041"),
    *("&", "&&&", "=", "==", "=x", "a=b=c", ";", "name", "name=", "+", "?", "resources=%00"),
    *(
        "name=%C0%AF",
        "&".join(f"required{n}=A" for n in range(300)),
        "a&" * 2000,
        "limit=" + "1" * 4400,
    ),
    *("resources=" + ",".join(f"CUSTOM_{n}:1" for n in range(200)), "resources[]=VCPU:1", "#x"[1:]),
    "&".join(f"resources{n}=VCPU:1" for n in range(1, 30)) + "&group_policy=none&limit=5",
)
SEGMENTS = (
    *(quote(name, safe="", errors="surrogatepass") for name in NAMES),
    *("..", "%2e%2e", "%2F", "a%2Fb", "%", "%zz", "%ff", "%ed%a0%80", ";a=b", "~", "a+b", "*"),
    *("%252e", HOST + "%00", HOST + "%0a", HOST + ".json", "x" * 7000),
)

values = st.one_of(st.sampled_from(AMOUNTS), st.sampled_from(CONDITIONS), st.sampled_from(NAMES))


@st.composite
def noisy_queries(draw: st.DrawFn) -> tuple[Call, bytes]:
    """A valid request, and the target that is sent in place of its own."""
    call = draw(st.sampled_from([call for call in CALLS if call.query] * 40 + list(CALLS)))
    query = call.query
    for _ in range(draw(st.integers(0, 3))):
        query = draw(_changed(query))
    fragments = draw(st.lists(st.sampled_from(FRAGMENTS), max_size=1 if query else 2))
    text = "&".join(fragments + [f"{_text(key)}={_text(value)}" for key, value in query])
    return call, call.path.encode() + b"?" + text.encode()


@st.composite
def _changed(draw: st.DrawFn, query: Query) -> Query:
    key, value = draw(st.sampled_from(KEYS)), draw(values)
    if not query or draw(st.booleans()):
        return (*query, (key, value))
    place = draw(st.integers(0, len(query) - 1))
    old = query[place]
    new = draw(
        st.sampled_from(
            [[], [(old[0], value)], [old, old], [old, (old[0], value)], [(key, old[1])]]
        )
    )
    return (*query[:place], *new, *query[place + 1 :])


@st.composite
def noisy_paths(draw: st.DrawFn) -> tuple[Call, bytes]:
    """A valid request, and the target that is sent in place of its own."""
    call = draw(st.sampled_from(CALLS))
    segments = call.path[1:].split("/")
    place = draw(st.integers(0, len(segments) - 1))
    odd = draw(st.sampled_from(SEGMENTS))
    changes = (
        [*segments[:place], odd, *segments[place + 1 :]],
        [*segments[:-1], odd],
        [*segments, odd],
        [*segments, ""],
        [*segments[:place], "", *segments[place:]],
        [*segments[:place], segments[place].upper(), *segments[place + 1 :]],
        [*segments[:place], quote(segments[place]).replace("_", "%5F"), *segments[place + 1 :]],
        segments[:place],
    )
    path = "/" + "/".join(draw(st.sampled_from(changes)))
    return call, path.encode() + call.target(call.query)[len(call.path) :]


def _text(value: str) -> str:
    return quote(value, safe="", errors="surrogatepass")
