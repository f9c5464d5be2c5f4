//! What the text of every refused scenario is. `knee-fuzz` includes this file: its
//! search makes the same claim.

/// At most 20 mistakes in the order of the file, each a paragraph, and a line that says if there are more.
pub fn assert_is_a_paragraph_for_each_mistake(error: &str, file: &str, text: &str) {
    let paragraphs: Vec<&str> = error.split('\n').collect();
    assert!((1..=21).contains(&paragraphs.len()), "{error}");
    for paragraph in &paragraphs {
        assert_is_one_paragraph(paragraph, file, text);
    }
    assert!(
        paragraphs.len() <= 20 || paragraphs[20].contains("only the first 20 mistakes"),
        "{error}"
    );
}

/// `FILE:LINE: what …`, with a line of the text, on one line.
fn assert_is_one_paragraph(error: &str, file: &str, text: &str) {
    let rest = error
        .strip_prefix(file)
        .and_then(|rest| rest.strip_prefix(':'));
    let (line, said) = rest
        .and_then(|rest| rest.split_once(": "))
        .unwrap_or_else(|| panic!("no FILE:LINE: {error}"));
    let line: usize = line
        .parse()
        .unwrap_or_else(|_| panic!("no line number: {error}"));
    assert!(
        (1..=text.lines().count() + 1).contains(&line),
        "line {line} is in the file: {error}"
    );
    assert!(
        !said.is_empty() && !error.contains(char::is_control),
        "one line of text: {error:?}"
    );
    assert!(
        error.chars().count() < 1_500,
        "a paragraph, not a page: {error}"
    );
}
