//! Published figures.

use super::refused;

#[test]
fn a_published_figure_without_unit_source_or_value_is_refused() {
    refused(&[
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
figure = "611Mbit/s"
source = "article D""#,
            r#"s.toml:9: published.0.value: missing; expected text on one line, in quotes. Add value = "bbr1.goodput" in [[published]]."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
source = "article D""#,
            r#"s.toml:9: published.0.figure: missing; expected a quantity with its unit such as "10.5Mbit/s", "57ms", "80kB", "140000/s" or "1.5%", or a ratio such as "31.7", in quotes. Add figure = "10.5Mbit/s" in [[published]]."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = "611Mbit/s""#,
            r#"s.toml:9: published.0.source: missing; expected text on one line, in quotes. Add source = "the article, its hosts and its kernel" in [[published]]."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = "611Mbit/s"
source = """#,
            r#"s.toml:12: published.0.source: got ""; expected text on one line, in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = 3
figure = "611Mbit/s"
source = "article D""#,
            r#"s.toml:10: published.0.value: got 3; expected text on one line, in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = ["cubic.goodput"]
figure = "611Mbit/s"
source = "article D""#,
            r#"s.toml:10: published.0.value: got a list; expected text on one line, in quotes. This key cannot be an axis of the matrix."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = 611
source = "article D""#,
            r#"s.toml:11: published.0.figure: got the bare number 611; expected a quantity with its unit such as "10.5Mbit/s", "57ms", "80kB", "140000/s" or "1.5%", or a ratio such as "31.7", in quotes. Write it with its unit, in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = "611Mbps"
source = "article D""#,
            r#"s.toml:11: published.0.figure: got "611Mbps", whose unit "Mbps" is unknown here; expected a quantity with its unit such as "10.5Mbit/s", "57ms", "80kB", "140000/s" or "1.5%", or a ratio such as "31.7", in quotes. Did you mean "611Mbit/s"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = "about 600Mbit/s"
source = "article D""#,
            r#"s.toml:11: published.0.figure: got "about 600Mbit/s"; expected a quantity with its unit such as "10.5Mbit/s", "57ms", "80kB", "140000/s" or "1.5%", or a ratio such as "31.7", in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = "-1ms"
source = "article D""#,
            r#"s.toml:11: published.0.figure: got "-1ms", which is negative; expected a quantity with its unit such as "10.5Mbit/s", "57ms", "80kB", "140000/s" or "1.5%", or a ratio such as "31.7", in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = ["1ms", "2ms"]
source = "article D""#,
            r#"s.toml:11: published.0.figure: got a list; expected a quantity with its unit such as "10.5Mbit/s", "57ms", "80kB", "140000/s" or "1.5%", or a ratio such as "31.7", in quotes. This key cannot be an axis of the matrix."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figur = "611Mbit/s"
source = "article D""#,
            r#"s.toml:11: published.0.figur: unknown key; known here: value, figure, source. Did you mean "figure"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[published]
value = "cubic.goodput""#,
            "s.toml:9: published: got a table; expected [[published]] tables. Begin each with a line [[published]], in double brackets.",
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
publshed = []"#,
            r#"s.toml:2: publshed: unknown key; known here: title, claim, duration, warmup, repeat, seed, sample_interval, samples, kernel, path, hop, sender, receiver, flow, zip, sample, expect, published. Did you mean "published"?"#,
        ),
    ]);
}
