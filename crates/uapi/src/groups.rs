//! Numbers of a driver that are asked for together, by netlink and by ioctl: both have them in the same order.
//! Source: Linux 6.18, include/uapi/linux/{ethtool,ethtool_netlink}.h.

// enum in include/uapi/linux/ethtool_netlink.h.
pub const RINGS_GET: u8 = 15;
const CHANNELS_GET: u8 = 17;
const COALESCE_GET: u8 = 19;

/// A value of a driver.
pub struct Value {
    /// Of netlink.
    pub attribute: u16,
    /// As ethtool prints it.
    pub name: &'static str,
    /// `None`: it is on or off.
    pub unit: Option<&'static str>,
}

const fn value(attribute: u16, name: &'static str, unit: &'static str) -> Value {
    Value {
        attribute,
        name,
        unit: Some(unit),
    }
}

const fn switch(attribute: u16, name: &'static str) -> Value {
    Value {
        attribute,
        name,
        unit: None,
    }
}

/// Numbers of a driver that are asked for together.
pub struct Group {
    pub kind: &'static str,
    /// Command of netlink, and of the ioctl those that ask and set.
    pub netlink: u8,
    pub(crate) get: u32,
    pub(crate) set: u32,
    /// Words of the ioctl after its command. Each has an attribute of netlink, in the same order.
    pub(crate) words: usize,
    pub values: &'static [Value],
}

impl Group {
    /// The name of a word of the ioctl.
    pub(crate) fn name_of(&self, word: usize) -> Option<&'static str> {
        const FIRST_ATTRIBUTE: usize = 2;
        let attribute = word + FIRST_ATTRIBUTE;
        let known = self
            .values
            .iter()
            .find(|value| usize::from(value.attribute) == attribute);
        known.map(|value| value.name)
    }
}

/// All groups.
pub const GROUPS: &[&Group] = &[&COALESCE, &RINGS, &CHANNELS];

pub const RINGS: Group = Group {
    kind: "ring",
    netlink: RINGS_GET,
    get: 0x10,
    set: 0x11,
    words: 8,
    values: RING_VALUES,
};

pub const CHANNELS: Group = Group {
    kind: "channels",
    netlink: CHANNELS_GET,
    get: 0x3c,
    set: 0x3d,
    words: 8,
    values: CHANNEL_VALUES,
};

pub const COALESCE: Group = Group {
    kind: "coalesce",
    netlink: COALESCE_GET,
    get: 0x0e,
    set: 0x0f,
    words: 22,
    values: COALESCE_VALUES,
};

/// ETHTOOL_A_RINGS_*.
const RING_VALUES: &[Value] = &[
    value(2, "rx-max", "descriptors"),
    value(3, "rx-mini-max", "descriptors"),
    value(4, "rx-jumbo-max", "descriptors"),
    value(5, "tx-max", "descriptors"),
    value(6, "rx", "descriptors"),
    value(7, "rx-mini", "descriptors"),
    value(8, "rx-jumbo", "descriptors"),
    value(9, "tx", "descriptors"),
    value(10, "rx-buf-len", "bytes"),
    value(12, "cqe-size", "bytes"),
    switch(13, "tx-push"),
    switch(14, "rx-push"),
    value(15, "tx-push-buf-len", "bytes"),
];

/// ETHTOOL_A_CHANNELS_*.
const CHANNEL_VALUES: &[Value] = &[
    value(2, "rx-max", ""),
    value(3, "tx-max", ""),
    value(4, "other-max", ""),
    value(5, "combined-max", ""),
    value(6, "rx", ""),
    value(7, "tx", ""),
    value(8, "other", ""),
    value(9, "combined", ""),
];

/// ETHTOOL_A_COALESCE_*.
const COALESCE_VALUES: &[Value] = &[
    value(2, "rx-usecs", "us"),
    value(3, "rx-frames", "packets"),
    value(4, "rx-usecs-irq", "us"),
    value(5, "rx-frames-irq", "packets"),
    value(6, "tx-usecs", "us"),
    value(7, "tx-frames", "packets"),
    value(8, "tx-usecs-irq", "us"),
    value(9, "tx-frames-irq", "packets"),
    value(10, "stats-block-usecs", "us"),
    switch(11, "adaptive-rx"),
    switch(12, "adaptive-tx"),
    value(13, "pkt-rate-low", "packets/s"),
    value(14, "rx-usecs-low", "us"),
    value(15, "rx-frames-low", "packets"),
    value(16, "tx-usecs-low", "us"),
    value(17, "tx-frames-low", "packets"),
    value(18, "pkt-rate-high", "packets/s"),
    value(19, "rx-usecs-high", "us"),
    value(20, "rx-frames-high", "packets"),
    value(21, "tx-usecs-high", "us"),
    value(22, "tx-frames-high", "packets"),
    value(23, "sample-interval", "s"),
    switch(24, "cqe-mode-tx"),
    switch(25, "cqe-mode-rx"),
    value(26, "tx-aggr-max-bytes", "bytes"),
    value(27, "tx-aggr-max-frames", "packets"),
    value(28, "tx-aggr-time-usecs", "us"),
];
