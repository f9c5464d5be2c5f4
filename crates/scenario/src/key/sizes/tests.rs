use super::*;

fn read(text: &str) -> SizeSpec {
    SizeSpec::read(text, Files::NONE).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn draws(spec: &SizeSpec, count: usize) -> Vec<u64> {
    let mut rng = Stream::new(11, "sizes");
    (0..count).map(|_| spec.draw(&mut rng)).collect()
}

const CASES: [&str; 6] = [
    "pareto",
    "pareto shape 1 from 1kB to 1MB",
    "pareto shape 2.5 from 500B to 1GB",
    "lognormal",
    "web-search",
    "data-mining",
];

#[test]
fn sizes_follow_the_distribution() {
    // Kolmogorov and Smirnov, one sample: at a level of 0.1 % the distance is below
    // 1.95 / sqrt(n). Whole bytes move a small size by a byte at most.
    const N: usize = 50_000;
    for text in CASES {
        let spec = read(text);
        let mut sizes = draws(&spec, N);
        sizes.sort_unstable();
        let mut furthest = 0.0f64;
        for (rank, window) in sizes.windows(2).enumerate() {
            if window[0] < window[1] {
                let share = (rank + 1) as f64 / N as f64;
                furthest = furthest.max((share - spec.share_up_to((window[0] + 1) as f64)).abs());
            }
        }
        let most = 1.95 / (N as f64).sqrt();
        assert!(furthest < most, "{text}: {furthest} is not below {most}");
    }
}

#[test]
fn means_are_those_of_the_draws() {
    for (text, tolerance) in CASES.into_iter().zip([0.1, 0.03, 0.02, 0.02, 0.02, 0.05]) {
        let spec = read(text);
        let sizes = draws(&spec, 200_000);
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        let ratio = mean / spec.mean_bytes();
        assert!((ratio - 1.0).abs() < tolerance, "{text}: {ratio}");
    }
}

#[test]
fn defaults_have_the_published_means() {
    for (text, bytes) in [
        // Less than 12 kB, as it is cut.
        ("pareto", 10.62e3),
        // The source's mean of 10.71 kB is 3 % less than its own parameters give.
        ("lognormal", 11.05e3),
        ("web-search", 1.711e6),
        ("data-mining", 12.66e6),
    ] {
        let ratio = read(text).mean_bytes() / bytes;
        assert!((ratio - 1.0).abs() < 0.01, "{text}: {ratio}");
    }
}

#[test]
fn texts_come_back_as_they_are_meant() {
    for text in CASES {
        let spec = read(text);
        assert_eq!(read(&spec.to_string()), spec, "{text}");
    }
    assert_eq!(
        read("lognormal sigma 2").to_string(),
        "lognormal median 4316B sigma 2 from 100B to 2000000B"
    );
}

#[test]
fn what_is_no_distribution_is_refused() {
    let refused = |text: &str| SizeSpec::read(text, Files::NONE).unwrap_err();
    assert_eq!(refused("parto"), TextError::Kind("parto".into()));
    for text in ["pareto 1.2", "pareto scale 2", "web-search 3", "cdf"] {
        assert_eq!(refused(text), TextError::Form, "{text}");
    }
    for text in [
        "pareto shape 0",
        "pareto shape -1",
        "pareto shape inf",
        "pareto from 1MB to 1kB",
        "pareto from 0B",
        "lognormal median 5MB",
    ] {
        let error = refused(text);
        assert!(
            matches!(error, TextError::Impossible(_)),
            "{text}: {error:?}"
        );
    }
    assert!(matches!(refused("pareto from 5"), TextError::Unit(_)));
    assert!(matches!(refused("cdf x.txt"), TextError::File(_)));
}

#[test]
fn file_of_points_may_count_shares_or_percent() {
    let read = |text: &str| Cdf::read("cdf a", "a.txt", text);
    let shares = read("# bytes share\n1000 0.5\n3e3 1\n").unwrap();
    assert_eq!(Ok(&shares), read("1000,50\n3000\t100").as_ref());
    // Half of them are 1000 B, the others 1000 to 3000 B.
    assert_eq!(shares.mean_bytes(), 1_500.0);
    assert_eq!(shares.share_up_to(2_000.0), 0.75);
    for (text, why) in [
        (
            "1000 0.5\n900 1",
            "a.txt:2: got \"900 1\" behind 1000 and 0.5; expected bytes up to",
        ),
        ("1000 0.5\n2000 0.4", "a.txt:2: got"),
        ("1000", "a.txt:1: got"),
        ("1000 NaN", "a.txt:1: got"),
        ("1000 0.5", "a.txt: the last share is 0.5; expected"),
        ("", "a.txt: the last share is 0; expected"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with(why), "{text}: {error}");
    }
}
