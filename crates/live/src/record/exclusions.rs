//! Why a selection has no socket: what each of its filters excludes.

use std::collections::BTreeMap;

use knee_collect::KernelError;
use knee_collect::sock_diag::Extensions;
use serde::Serialize;

use super::dumper::Dumper;
use super::options::{Selection, Wanted};
use super::within;

/// Counts the TCP sockets of a namespace, and those that each filter excludes by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exclusions {
    pub sockets: u64,
    /// By option: `port`, `address`, `algorithm`, `state`, `min-bytes`, `mark`,
    /// `cgroup`. A filter that excludes nothing has no entry.
    pub by: BTreeMap<&'static str, u64>,
}

/// Counts the sockets that exist now.
///
/// # Errors
/// An invalid text, or sock_diag or the namespace is not available.
pub fn exclusions(wanted: &Wanted) -> Result<Exclusions, KernelError> {
    let all = Selection::new(&Wanted {
        states: vec!["all".to_owned()],
        netns: wanted.netns.clone(),
        ..Wanted::default()
    })?;
    let conditions = conditions(wanted, &all)?;
    within(&all, || {
        let mut found = Exclusions::default();
        let mut dumper = Dumper::new(&all, Extensions::INFO_AND_ALGORITHM)?;
        dumper.dump(|diag| {
            found.sockets += 1;
            for (option, condition) in &conditions {
                let holds = condition.states >> diag.state & 1 == 1
                    && condition.filter.matches(&diag)
                    && condition.takes(diag.congestion, diag.info.as_ref());
                if !holds {
                    *found.by.entry(*option).or_default() += 1;
                }
            }
        })?;
        Ok(found)
    })
}

/// Returns a selection for each kind of filter, with that filter alone.
fn conditions(
    wanted: &Wanted,
    all: &Selection,
) -> Result<Vec<(&'static str, Selection)>, KernelError> {
    let nothing = Wanted {
        states: vec!["all".to_owned()],
        ..Wanted::default()
    };
    let alone = [
        (
            "port",
            Wanted {
                ports: wanted.ports.clone(),
                ..nothing.clone()
            },
        ),
        (
            "address",
            Wanted {
                addresses: wanted.addresses.clone(),
                ..nothing.clone()
            },
        ),
        (
            "algorithm",
            Wanted {
                algorithms: wanted.algorithms.clone(),
                ..nothing.clone()
            },
        ),
        (
            "state",
            Wanted {
                states: wanted.states.clone(),
                ..nothing.clone()
            },
        ),
        (
            "min-bytes",
            Wanted {
                min_bytes: wanted.min_bytes.clone(),
                ..nothing.clone()
            },
        ),
        (
            "mark",
            Wanted {
                mark: wanted.mark.clone(),
                ..nothing.clone()
            },
        ),
        (
            "cgroup",
            Wanted {
                cgroup: wanted.cgroup.clone(),
                ..nothing
            },
        ),
    ];
    let mut conditions = Vec::new();
    for (option, wanted) in alone {
        let selection = Selection::new(&wanted)?;
        let is_all = selection.filter == all.filter
            && selection.states == all.states
            && selection.algorithms.is_empty()
            && selection.min_bytes == 0;
        if !is_all {
            conditions.push((option, selection));
        }
    }
    Ok(conditions)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn each_filter_is_counted_by_itself() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let near = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let far = listener.accept().unwrap().0;
        let wanted = Wanted {
            ports: vec![port.to_string()],
            addresses: vec!["192.0.2.0/24".to_owned()],
            min_bytes: Some("1GB".to_owned()),
            ..Wanted::default()
        };
        let found = exclusions(&wanted).unwrap();
        assert!(found.sockets >= 3);
        let out = |option: &str| found.by.get(option).copied().unwrap_or(0);
        // Ours: the listener and both ends. Of this machine's others, any may have such an address.
        assert!(out("port") <= found.sockets - 3);
        assert!((3..=found.sockets).contains(&out("address")));
        assert!((3..=found.sockets).contains(&out("min-bytes")));
        // By default those are left out that are not connected: the listener.
        assert!((1..=found.sockets - 2).contains(&out("state")));
        assert_eq!((out("mark"), out("algorithm")), (0, 0));
        drop((near, far));
    }

    #[test]
    fn an_invalid_filter_is_refused() {
        let wanted = Wanted {
            ports: vec!["http".to_owned()],
            ..Wanted::default()
        };
        assert!(
            exclusions(&wanted)
                .unwrap_err()
                .to_string()
                .contains("http")
        );
    }
}
