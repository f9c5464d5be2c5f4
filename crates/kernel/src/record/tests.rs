//! Recordings of this host's own loopback connections.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

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
    let batches = sockets(&selection(&[port])).unwrap();
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

/// Columns that run on between two dumps.
const CLOCKS: [&str; 4] = [
    "last_data_sent_ms",
    "last_data_recv_ms",
    "last_ack_recv_ms",
    "timer_ms",
];

/// A value as text; `None`: null.
fn text(batch: &RecordBatch, name: &str, row: usize) -> Option<String> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt64Type};
    let column = batch.column_by_name(name).unwrap();
    if column.is_null(row) {
        return None;
    }
    let names = || {
        let names = column.as_dictionary_opt::<Int32Type>()?;
        let key = names.keys().value(row) as usize;
        Some(names.values().as_string::<i32>().value(key).to_owned())
    };
    column
        .as_primitive_opt::<Int64Type>()
        .map(|values| values.value(row).to_string())
        .or_else(|| {
            Some(
                column
                    .as_primitive_opt::<Int32Type>()?
                    .value(row)
                    .to_string(),
            )
        })
        .or_else(|| {
            Some(
                column
                    .as_primitive_opt::<UInt64Type>()?
                    .value(row)
                    .to_string(),
            )
        })
        .or_else(|| {
            Some(
                column
                    .as_primitive_opt::<Float64Type>()?
                    .value(row)
                    .to_string(),
            )
        })
        .or_else(|| Some(column.as_boolean_opt()?.value(row).to_string()))
        .or_else(|| Some(column.as_string_opt::<i32>()?.value(row).to_owned()))
        .or_else(names)
}

#[test]
fn every_field_that_ss_prints_has_the_same_value_in_our_dump() {
    use knee_observe::import::ss::{Options, Parser};
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut streams = Vec::new();
    for size in [1, 1_000, 300_000] {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let mut far = listener.accept().unwrap().0;
        let bytes = vec![0; size];
        let writer = std::thread::spawn(move || {
            stream.write_all(&bytes).unwrap();
            stream
        });
        far.read_exact(&mut vec![0; size]).unwrap();
        streams.push((writer.join().unwrap(), far));
    }
    // Delayed ACKs go out.
    std::thread::sleep(Duration::from_millis(300));
    let port = format!("sport = :{port} or dport = :{port}");
    let Ok(printed) = std::process::Command::new("ss")
        .args(["-tinemH", &port])
        .output()
    else {
        return; // a host without iproute2
    };
    let port = listener.local_addr().unwrap().port();
    let ours = sockets(&selection(&[port])).unwrap();
    let mut parser = Parser::new(Options {
        anonymiser: knee_observe::Anonymiser::Keep,
        zone_s: None,
        host: None,
    });
    for line in printed.stdout.split(|&byte| byte == b'\n') {
        assert!(
            parser.line(line).is_none(),
            "six sockets make no full batch"
        );
    }
    let theirs = parser.rest().unwrap();
    assert_eq!(theirs.num_rows(), 6);
    let (mut compared, mut unlike) = (0, Vec::new());
    for row in 0..theirs.num_rows() {
        let cookie = text(&theirs, "cookie", row);
        let own = (0..ours[0].num_rows())
            .find(|&own| text(&ours[0], "cookie", own) == cookie)
            .expect("both see the socket");
        for field in theirs.schema().fields() {
            let name = field.name();
            let Some(value) = text(&theirs, name, row) else {
                continue;
            };
            if CLOCKS.contains(&name.as_str()) {
                continue;
            }
            compared += 1;
            let found = text(&ours[0], name, own);
            if found.as_ref() != Some(&value) {
                unlike.push(format!("{name}: ss {value}, ours {found:?}"));
            }
        }
    }
    assert_eq!(unlike, Vec::<String>::new());
    assert!(compared > 6 * 30, "{compared} values were compared");
}
