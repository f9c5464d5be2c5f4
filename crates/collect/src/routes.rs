//! Routes by interface and metrics, by rtnetlink. Addresses are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteMetric, RouteType};
use serde::Serialize;

use super::routing::Routing;

/// Routes through an interface that set the same metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Routes {
    pub interface: Option<String>,
    pub default: bool,
    pub initcwnd_pkts: Option<u32>,
    pub initrwnd_pkts: Option<u32>,
    pub algorithm: Option<String>,
    pub mtu_bytes: Option<u32>,
    pub mtu_locked: bool,
    pub routes: u32,
}

/// Reads the routes of the namespace, and through which interfaces default routes lead. `names`: interfaces by index.
///
/// # Errors
/// The kernel refuses the dump.
pub fn routes(
    routing: &mut Routing,
    names: &BTreeMap<u32, String>,
) -> io::Result<(Vec<Routes>, BTreeSet<u32>)> {
    let mut groups: BTreeMap<Routes, u32> = BTreeMap::new();
    let mut through = BTreeSet::new();
    let question = RouteNetlinkMessage::GetRoute(RouteMessage::default());
    routing.dump(question, |answer| {
        if let RouteNetlinkMessage::NewRoute(route) = answer {
            add(&route, names, &mut groups, &mut through);
        }
    })?;
    let rows = groups
        .into_iter()
        .map(|(group, routes)| Routes { routes, ..group })
        .collect();
    Ok((rows, through))
}

fn add(
    route: &RouteMessage,
    names: &BTreeMap<u32, String>,
    groups: &mut BTreeMap<Routes, u32>,
    through: &mut BTreeSet<u32>,
) {
    const TABLE_LOCAL: u32 = 255;
    // Broadcasts, multicasts and the host's own addresses are none that TCP sends over.
    let is_local = |attribute: &RouteAttribute| *attribute == RouteAttribute::Table(TABLE_LOCAL);
    if route.header.kind != RouteType::Unicast || route.attributes.iter().any(is_local) {
        return;
    }
    let mut group = Routes {
        default: route.header.destination_prefix_length == 0,
        ..Routes::default()
    };
    // Several where it is spread over hops.
    let mut outputs = BTreeSet::new();
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Oif(index) => {
                outputs.insert(*index);
            }
            RouteAttribute::MultiPath(hops) => {
                outputs.extend(hops.iter().map(|hop| hop.interface_index));
            }
            RouteAttribute::Metrics(metrics) => {
                metrics.iter().for_each(|metric| set(&mut group, metric))
            }
            _ => {}
        }
    }
    for index in outputs {
        if group.default {
            through.insert(index);
        }
        group.interface = names.get(&index).cloned();
        *groups.entry(group.clone()).or_default() += 1;
    }
}

fn set(group: &mut Routes, metric: &RouteMetric) {
    /// `1 << RTAX_MTU`.
    const MTU_BIT: u32 = 1 << 2;
    match metric {
        RouteMetric::InitCwnd(segments) => group.initcwnd_pkts = Some(*segments),
        RouteMetric::InitRwnd(segments) => group.initrwnd_pkts = Some(*segments),
        RouteMetric::CcAlgo(name) => {
            group.algorithm = Some(name.clone()).filter(|name| !name.is_empty())
        }
        RouteMetric::Mtu(bytes) => group.mtu_bytes = Some(*bytes),
        RouteMetric::Lock(bits) => group.mtu_locked = bits & MTU_BIT != 0,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::route::RouteNextHop;

    use super::*;

    #[test]
    fn routes_with_the_same_metrics_are_one_row_and_local_ones_none() {
        let mut next_hop = RouteNextHop::default();
        next_hop.interface_index = 3;
        let metrics = RouteAttribute::Metrics(vec![
            RouteMetric::InitCwnd(40),
            RouteMetric::Lock(4),
            RouteMetric::Mtu(1400),
            RouteMetric::CcAlgo("bbr".into()),
        ]);
        let route = |prefix: u8, attributes: Vec<RouteAttribute>| {
            let mut route = RouteMessage::default();
            route.header.kind = RouteType::Unicast;
            route.header.destination_prefix_length = prefix;
            route.attributes = attributes;
            route
        };
        let names = BTreeMap::from([(2, "eth0".to_owned()), (3, "eth1".to_owned())]);
        let (mut groups, mut through) = (BTreeMap::new(), BTreeSet::new());
        for route in [
            route(0, vec![RouteAttribute::Oif(2), metrics]),
            route(24, vec![RouteAttribute::Oif(2)]),
            route(16, vec![RouteAttribute::Oif(2)]),
            route(0, vec![RouteAttribute::MultiPath(vec![next_hop])]),
            route(32, vec![RouteAttribute::Oif(2), RouteAttribute::Table(255)]),
        ] {
            add(&route, &names, &mut groups, &mut through);
        }
        assert_eq!(through, BTreeSet::from([2, 3]));
        let counts: Vec<_> = groups
            .iter()
            .map(|(group, count)| (group.interface.as_deref(), *count))
            .collect();
        assert_eq!(
            counts,
            [(Some("eth0"), 2), (Some("eth0"), 1), (Some("eth1"), 1)]
        );
        let set = Routes {
            interface: Some("eth0".to_owned()),
            default: true,
            initcwnd_pkts: Some(40),
            algorithm: Some("bbr".to_owned()),
            mtu_bytes: Some(1400),
            mtu_locked: true,
            ..Routes::default()
        };
        assert!(groups.contains_key(&set));
    }
}
