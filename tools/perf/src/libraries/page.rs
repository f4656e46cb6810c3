//! The document. Each measurement writes its own part, and keeps the others.

/// A part of the document.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// Its heading. Those within it are a level below.
    heading: &'static str,
    /// The make target that writes it.
    pub target: &'static str,
}

pub const ITSELF: Part = Part { heading: "A client against itself", target: "bench-aa" };
pub const CLIENTS: Part = Part { heading: "Client libraries against each other", target: "bench-clients" };

/// All parts, in order.
const ALL: [&Part; 2] = [&ITSELF, &CLIENTS];

const BEGINNING: &str = "\
# Comparisons of client libraries

Can a [comparison](../experiments.md#comparison) of [client libraries](../load.md#client-libraries) be trusted, and what does it say? Each
part names the command that measured it.
";

/// The document `old` with `new` as the text of `part`.
pub fn with(old: &str, part: &Part, new: &str) -> String {
    let section = |one: &&Part| {
        let text = if *one == part { Some(new) } else { text_of(old, one) };
        let missing = || format!("Not measured yet: `make {}` writes this part.", one.target);
        format!("\n## {}\n\n{}\n", one.heading, text.map_or_else(missing, |text| text.trim().to_owned()))
    };
    let sections: String = ALL.iter().map(section).collect();
    format!("{BEGINNING}{sections}")
}

/// The text below the heading of `part`.
fn text_of<'a>(document: &'a str, part: &Part) -> Option<&'a str> {
    let (_, text) = document.split_once(&format!("\n## {}\n", part.heading))?;
    text.split("\n## ").next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_replaces_its_part_only() {
        for part in ALL {
            let first = with("", part, "first\n\n### detail\n\nof it\n");
            assert_eq!(text_of(&first, part).map(str::trim), Some("first\n\n### detail\n\nof it"));
            assert_eq!(first.matches("Not measured yet").count(), ALL.len() - 1);
            for other in ALL.into_iter().filter(|other| *other != part) {
                let second = with(&first, other, "second");
                assert_eq!(text_of(&second, part), text_of(&first, part));
                assert_eq!(text_of(&second, other).map(str::trim), Some("second"));
            }
            assert_eq!(with(&first, part, "third"), with("", part, "third"));
        }
    }
}
