use super::*;

#[test]
fn quantities_are_exact() {
    assert_eq!(duration("100ms"), Ok(Nanos::from_ms(100)));
    assert_eq!(duration("0.0000001s"), Ok(Nanos(100)));
    assert_eq!(duration("1.5 min"), Ok(Nanos::from_secs(90)));
    assert_eq!(rate("0.1Mbit/s"), Ok(Rate::from_bits_per_sec(100_000)));
    assert_eq!(rate("unlimited"), Ok(None));
    assert_eq!(bytes("1.5KiB"), Ok(1536));
    assert_eq!(bytes("64kB"), Ok(64_000));
    assert_eq!(share("1.5%"), Ok(0.015));
    assert_eq!(share("0.001%"), Ok(1e-5));
    assert_eq!(
        buffer("0.5bdp"),
        Ok(BufferSize::Bdp {
            numerator: 5,
            denominator: 10
        })
    );
    assert_eq!(buffer("170packets"), Ok(BufferSize::Packets(170)));
    assert_eq!(buffer("20ms"), Ok(BufferSize::Time(Nanos::from_ms(20))));
    assert_eq!(buffer("256KiB"), Ok(BufferSize::Bytes(262_144)));
}

#[test]
fn what_is_not_a_quantity_is_refused_with_the_next_step() {
    let said = |error: UnitError| error.to_string();
    assert_eq!(
        said(duration("100").unwrap_err()),
        "got \"100\", a bare number; expected a length of time such as \"100ms\" (ns, us, ms, s, min, h). Write the unit behind the number."
    );
    assert!(said(rate("50Mbps").unwrap_err()).ends_with("Did you mean \"50Mbit/s\"?"));
    assert!(said(rate("50mbit/s").unwrap_err()).ends_with("Did you mean \"50Mbit/s\"?"));
    for (text, bits, bytes) in [
        ("200Mb", "200Mbit/s", "1600Mbit/s"),
        ("10G", "10Gbit/s", "80Gbit/s"),
        ("0.05 MB/s", "0.05Mbit/s", "0.4Mbit/s"),
        ("2.5k", "2.5kbit/s", "20kbit/s"),
        ("1/s", "1bit/s", "8bit/s"),
    ] {
        let question = format!("Did you mean \"{bits}\" or, if these are bytes, \"{bytes}\"?");
        let got = said(rate(text).unwrap_err());
        assert!(got.ends_with(&question), "{text}: {got}");
    }
    assert!(said(duration("10G").unwrap_err()).ends_with("(ns, us, ms, s, min, h)."));
    assert!(said(duration("20msec").unwrap_err()).ends_with("Did you mean \"20ms\"?"));
    assert!(said(bytes("64K").unwrap_err()).ends_with("Did you mean \"64KiB\"?"));
    assert!(said(buffer("10pkts").unwrap_err()).ends_with("Did you mean \"10packets\"?"));
    assert!(said(rate("unlimitd").unwrap_err()).ends_with("Did you mean \"unlimited\"?"));
    assert!(matches!(duration("-1s"), Err(UnitError::Negative { .. })));
    assert!(matches!(duration("1.5ns"), Err(UnitError::TooFine { .. })));
    assert!(matches!(
        duration("99999999999h"),
        Err(UnitError::TooLarge { .. })
    ));
    assert!(matches!(
        duration(&"9".repeat(500)),
        Err(UnitError::NoUnit { .. })
    ));
    assert!(matches!(
        bytes(&format!("{}B", "9".repeat(500))),
        Err(UnitError::TooLarge { .. })
    ));
    assert!(matches!(rate("0bit/s"), Err(UnitError::ZeroRate { .. })));
    for text in ["", "ms", ".5s", "5.s", "+1s", "one", "∞"] {
        assert!(
            matches!(duration(text), Err(UnitError::NotANumber { .. })),
            "{text}"
        );
    }
    assert!(duration("1e3s").is_err() && duration("1_000s").is_err() && duration("0x1s").is_err());
}

#[test]
fn a_figure_is_any_quantity_or_a_ratio() {
    for text in [
        "10.5Mbit/s",
        "57 ms",
        "2.7us",
        "80kB",
        "140000/s",
        "98.20%",
        "31.7",
        "0%",
    ] {
        assert_eq!(figure(text), Ok(()), "{text}");
    }
    let said = |text| figure(text).unwrap_err().to_string();
    assert!(said("611Mbps").ends_with("Did you mean \"611Mbit/s\"?"));
    assert!(said("4packets").contains("whose unit \"packets\" is unknown here"));
    for text in [
        "",
        "about 600Mbit/s",
        "-1ms",
        "1.55-1.86",
        "1.2x",
        "unlimited",
    ] {
        assert!(figure(text).is_err(), "{text}");
    }
}

#[test]
fn quoted_text_stays_on_one_line_and_short() {
    assert_eq!(quoted("a\nb\u{7f}"), "\"a\\nb\\u{7f}\"");
    assert_eq!(quoted(&"x".repeat(100)).chars().count(), 63);
}
