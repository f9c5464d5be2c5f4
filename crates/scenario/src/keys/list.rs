//! The keys that belong to no struct of a cell: words, names and what other tables decide.
//!
//! Defaults are those of Linux 6.18, unless the source beside them says otherwise.

use crate::key::Default::{Required, Value, Words};
use crate::key::{Key, fixed, key, kind, secs, us};

use crate::workload::WORKLOADS;

/// Words about the scenario.
pub(super) static TITLE: &[Key] = &[
    fixed(key(
        "title",
        kind::LINE,
        Words("the file's name"),
        "what the scenario is about",
        "tcpknee",
    )),
    fixed(key(
        "claim",
        kind::ID,
        Words("none"),
        "id of the published claim it reproduces",
        "tcpknee",
    )),
];

pub(super) static RECEIVER: &[Key] = &[key(
    "algorithm",
    &kind::Algorithm,
    Value("cubic"),
    "congestion control of the far end, for what it sends back; the sender's is flow.algorithm",
    "Linux, CONFIG_DEFAULT_TCP_CONG",
)];

/// Of each flow: who it is, where it runs, and what names its further keys.
pub(super) static FLOW: &[Key] = &[
    key(
        "algorithm",
        &kind::Algorithm,
        Required("\"cubic\""),
        "congestion control of the sender",
        "TCP_CONGESTION",
    ),
    fixed(key(
        "name",
        kind::IDENTIFIER,
        Words(
            "the algorithm's name; with _2, _3 … behind it when an earlier [[flow]] has that name",
        ),
        "shown in tables and used by expectations",
        "tcpknee",
    )),
    key(
        "hops",
        kind::HOPS,
        Words("all"),
        "the [[hop]] tables that it crosses, counted from 1 in the data direction",
        "tcpknee",
    ),
    key(
        "rtt",
        &kind::Duration {
            min: us(1),
            max: secs(60),
        },
        Words("path.rtt"),
        "these flows' own base round-trip time",
        "tcpknee",
    ),
    key(
        "workload",
        &kind::Name("workload", || {
            WORKLOADS.iter().map(|kind| kind.name).collect()
        }),
        Value("bulk"),
        "what the application does with the connection",
        "tcpknee",
    ),
];

pub(super) static EXPECT: &[Key] = &[fixed(key(
    "assert",
    kind::LINE,
    Required("\"bbr1.goodput / cubic.goodput >= 20\""),
    "a comparison that must hold over the whole interval, such as \"bbr1.goodput / cubic.goodput >= 20\"",
    "tcpknee",
))];

pub(super) static PUBLISHED: &[Key] = &[
    fixed(key(
        "value",
        kind::LINE,
        Required("\"bbr1.goodput\""),
        "what of ours the figure stands beside: an expression as on one side of an expectation, of one cell; shown, never checked",
        "tcpknee",
    )),
    fixed(key(
        "figure",
        &kind::Figure,
        Required("\"10.5Mbit/s\""),
        "the figure as it was published",
        "tcpknee",
    )),
    fixed(key(
        "source",
        kind::LINE,
        Required("\"the article, its hosts and its kernel\""),
        "where it was published, and on what it was measured",
        "tcpknee",
    )),
];
