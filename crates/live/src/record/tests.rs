//! Recordings of this host's own loopback connections.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use super::*;

fn selection(ports: &[u16]) -> Selection {
    Selection::new(&Wanted {
        ports: ports.iter().map(u16::to_string).collect(),
        processes: true,
        ..Wanted::default()
    })
    .unwrap()
}

#[test]
fn one_dump_has_the_connection_with_its_process_and_algorithm() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let mut far = listener.accept().unwrap().0;
    stream.write_all(b"twelve bytes").unwrap();
    far.read_exact(&mut [0; 12]).unwrap();
    let batches = sockets(&selection(&[port]), &[]).unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
    let column = |name: &str| batches[0].column_by_name(name).unwrap();
    for name in [
        "process",
        "algorithm",
        "pid",
        "snd_cwnd",
        "rcvbuf_bytes",
        "cookie",
    ] {
        assert_eq!(column(name).null_count(), 0, "{name}");
    }
}

#[test]
fn one_dump_has_the_columns_asked_for_in_their_order_and_no_others() {
    let asked = ["srtt_us", "cookie"].map(str::to_owned);
    let batches = sockets(&selection(&[]), &asked).unwrap();
    let schema = batches[0].schema();
    let names: Vec<_> = schema.fields().iter().map(|field| field.name()).collect();
    assert_eq!(names, ["srtt_us", "cookie"]);
    let error = sockets(&selection(&[]), &["cokie".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("got \"cokie\""));
}

#[test]
fn refused_folder_is_told_with_its_path() {
    let asked = Asked {
        out: "/proc/no/such/folder".into(),
        every: "1s".into(),
        duration: None,
        keep: None,
        rotate: None,
        host: false,
        wanted: Wanted::default(),
    };
    let options = Options::new(asked).unwrap();
    let (stop, _keep) = nix::unistd::pipe().unwrap();
    let error = record(&options, stop.as_fd(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("/proc/no/such/folder"));
}
