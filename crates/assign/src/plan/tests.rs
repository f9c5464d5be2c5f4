use super::*;

fn plan(shares_pct: &[f64]) -> Plan {
    let mut plan = Plan {
        seed: 7,
        ..Plan::default()
    };
    plan.cut_to(24, 48);
    let names: Vec<String> = shares_pct.iter().map(|_| "reno".to_owned()).collect();
    plan.set(0, &names, &[Link::default()], &[]);
    plan.share(0, shares_pct);
    plan
}

fn from(remote: &str) -> Connection {
    Connection {
        remote: words(remote.parse().expect("a test's address is one")),
        ..Connection::default()
    }
}

fn arm(plan: &Plan, remote: &str) -> Option<u32> {
    plan.choose(&from(remote)).map(|choice| choice.arm)
}

/// The hash is written here once more, so that no change of it goes unseen: an
/// experiment that goes on after an update must keep its arms.
#[test]
fn known_prefixes_keep_their_arms() {
    fn mix(mut x: u64) -> u64 {
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }
    let plan = plan(&[25.0, 75.0]);
    for third in 0..=255 {
        let remote = format!("198.51.{third}.9");
        let unit = words(format!("198.51.{third}.0").parse().expect("it is one"));
        let mut hash = mix(7u64.wrapping_add(0x9e37_79b9_7f4a_7c15));
        hash = mix(hash ^ unit[0]);
        hash = mix(hash.wrapping_add(unit[1])) >> 32;
        let expected = u32::from(hash >= 1 << 30);
        assert_eq!(arm(&plan, &remote), Some(expected), "{remote}");
    }
}

#[test]
fn clients_of_one_prefix_have_one_arm_over_either_family_of_sockets() {
    let plan = plan(&[50.0, 50.0]);
    for third in 0..=255 {
        let first = arm(&plan, &format!("203.0.{third}.1"));
        assert_eq!(first, arm(&plan, &format!("203.0.{third}.254")));
        assert_eq!(first, arm(&plan, &format!("::ffff:203.0.{third}.77")));
    }
    let six = arm(&plan, "2001:db8:1::1");
    assert_eq!(six, arm(&plan, "2001:db8:1:ffff::2"));
}

#[test]
fn shares_are_kept_within_three_standard_deviations() {
    let plan = plan(&[10.0, 30.0, 60.0]);
    let mut counts = [0i64; 3];
    for unit in 0..60_000u32 {
        let remote = std::net::Ipv4Addr::from_bits(unit << 8 | 1);
        let choice = plan.choose(&from(&remote.to_string()));
        counts[choice.expect("every unit has an arm").arm as usize] += 1;
    }
    for (count, expected) in counts.iter().zip([6_000.0, 18_000.0, 36_000.0]) {
        let deviation: f64 = expected * (1.0 - expected / 60_000.0);
        assert!(
            (*count as f64 - expected).abs() < 3.0 * deviation.sqrt(),
            "{counts:?}"
        );
    }
}

#[test]
fn a_share_that_grows_keeps_the_units_it_had() {
    let (less, more) = (plan(&[10.0, 90.0]), plan(&[30.0, 70.0]));
    let mut joined = 0;
    for third in 0..=255 {
        let remote = format!("192.168.{third}.1");
        let (before, after) = (arm(&less, &remote), arm(&more, &remote));
        assert!(before == Some(1) || after == Some(0), "{remote}");
        joined += u32::from(before != after);
    }
    assert!(joined > 0);
}

#[test]
fn an_arm_of_all_takes_all_and_one_of_none_takes_none() {
    let plan = plan(&[0.0, 100.0, 0.0]);
    for third in 0..=255 {
        assert_eq!(arm(&plan, &format!("10.0.{third}.1")), Some(1));
    }
}

#[test]
fn filters_leave_connections_alone() {
    let mut plan = plan(&[100.0]);
    let name = ["reno".to_owned()];
    let ports = [Ports {
        low: 8000,
        high: 8010,
    }];
    plan.set(0, &name, &[Link::default()], &ports);
    plan.share(0, &[100.0]);
    let to = |local_port, remote_port| Connection {
        local_port,
        remote_port,
        ..from("192.0.2.1")
    };
    assert!(plan.choose(&to(8005, 40_000)).is_some());
    assert!(plan.choose(&to(40_000, 8010)).is_some());
    assert!(plan.choose(&to(8011, 7999)).is_none());
    plan.set(5, &name, &[Link::default()], &ports);
    plan.share(0, &[100.0]);
    assert!(plan.choose(&to(8005, 40_000)).is_none());
    assert!(
        plan.choose(&Connection {
            netns: 5,
            ..to(8005, 40_000)
        })
        .is_some()
    );
}

#[test]
fn links_have_shares_of_their_own_and_what_is_on_none_is_left_alone() {
    let mut plan = plan(&[50.0, 50.0]);
    let link = |address: &str| Link {
        local: Prefix::new(address.parse().expect("a test's address is one"), 24),
        ..Link::default()
    };
    let names = ["bbr".to_owned(), "cubic".to_owned()];
    plan.set(0, &names, &[link("10.1.0.7"), link("10.2.0.7")], &[]);
    plan.share(0, &[100.0, 0.0]);
    plan.share(1, &[0.0, 100.0]);
    let over = |local: &str| {
        let local = words(local.parse().expect("a test's address is one"));
        let connection = Connection {
            local,
            ..from("192.0.2.1")
        };
        plan.choose(&connection)
            .map(|choice| (choice.link, choice.arm))
    };
    assert_eq!(over("10.1.0.9"), Some((0, 0)));
    assert_eq!(over("10.2.0.9"), Some((1, 1)));
    assert_eq!(over("10.3.0.9"), None);
}

#[test]
fn connections_of_one_client_are_drawn_one_by_one_where_they_are_the_units() {
    let mut plan = plan(&[50.0, 50.0]);
    plan.unit = CONNECTION;
    let arms: Vec<u32> = (0..200)
        .filter_map(|cookie| {
            plan.choose(&Connection {
                cookie,
                ..from("192.0.2.1")
            })
        })
        .map(|choice| choice.arm)
        .collect();
    let first = arms.iter().filter(|&&arm| arm == 0).count();
    assert!((70..=130).contains(&first), "{first} of 200");
}

#[test]
fn seeds_assign_anew() {
    let (one, mut other) = (plan(&[50.0, 50.0]), plan(&[50.0, 50.0]));
    other.seed = 8;
    let differ = (0..=255)
        .map(|third| format!("172.16.{third}.1"))
        .filter(|remote| arm(&one, remote) != arm(&other, remote))
        .count();
    assert!((90..=166).contains(&differ), "{differ} of 256");
}

/// The program asks for the network namespace of a connection only then.
#[test]
fn a_network_namespace_matters_where_the_plan_or_a_link_has_one() {
    let mut plan = plan(&[100.0]);
    assert_eq!(plan.by_netns, 0);
    let names = ["reno".to_owned()];
    plan.set(
        0,
        &names,
        &[Link::default(), Link::new(5, Prefix::default())],
        &[],
    );
    assert_eq!(plan.by_netns, 1);
    plan.set(5, &names, &[Link::default()], &[]);
    assert_eq!(plan.by_netns, 1);
}
