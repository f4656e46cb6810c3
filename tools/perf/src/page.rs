//! Documents of several parts. Each measurement writes its own part, and keeps the others.

/// A part of a document.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// Its heading. Those within it are a level below.
    pub heading: &'static str,
    /// The make target that writes it.
    pub target: &'static str,
}

/// A document.
pub struct Page {
    /// The text before its parts.
    pub beginning: &'static str,
    /// In order.
    pub parts: &'static [&'static Part],
}

impl Page {
    /// The document `old` with `new` as the text of `part`.
    pub fn with(&self, old: &str, part: &Part, new: &str) -> String {
        let section = |one: &&Part| {
            let text = if *one == part { Some(new) } else { text_of(old, one) };
            let missing = || format!("Not measured yet: `make {}` writes this part.", one.target);
            format!("\n## {}\n\n{}\n", one.heading, text.map_or_else(missing, |text| text.trim().to_owned()))
        };
        let sections: String = self.parts.iter().map(section).collect();
        format!("{}{sections}", self.beginning)
    }
}

/// The text below the heading of `part`.
fn text_of<'a>(document: &'a str, part: &Part) -> Option<&'a str> {
    let (_, text) = document.split_once(&format!("\n## {}\n", part.heading))?;
    text.split("\n## ").next()
}

#[cfg(test)]
mod tests {
    use redisbench_testkit::documents::read;

    use super::*;
    use crate::{libraries, seeds};

    #[test]
    fn the_committed_pages_have_their_parts() {
        for (path, page) in [("docs/evidence/clients.md", libraries::PAGE), ("docs/evidence/seeds.md", seeds::PAGE)] {
            let text = read(path);
            assert!(text.starts_with(page.beginning), "{text}");
            let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
            assert_eq!(headings, page.parts.iter().map(|part| part.heading).collect::<Vec<_>>());
        }
    }

    const ONE: Part = Part { heading: "One", target: "one" };
    const TWO: Part = Part { heading: "Two of two", target: "two" };
    const THREE: Part = Part { heading: "Two", target: "two" };
    const PAGE: Page = Page { beginning: "# Title\n\nWhy.\n", parts: &[&ONE, &TWO, &THREE] };

    #[test]
    fn a_measurement_replaces_its_part_only() {
        for part in PAGE.parts.iter().copied() {
            let first = PAGE.with("", part, "first\n\n### detail\n\nof it\n");
            assert!(first.starts_with(PAGE.beginning), "{first}");
            assert_eq!(text_of(&first, part).map(str::trim), Some("first\n\n### detail\n\nof it"));
            assert_eq!(first.matches("Not measured yet").count(), PAGE.parts.len() - 1);
            for other in PAGE.parts.iter().copied().filter(|other| *other != part) {
                let second = PAGE.with(&first, other, "second");
                assert_eq!(text_of(&second, part), text_of(&first, part));
                assert_eq!(text_of(&second, other).map(str::trim), Some("second"));
            }
            assert_eq!(PAGE.with(&first, part, "third"), PAGE.with("", part, "third"));
        }
    }
}
