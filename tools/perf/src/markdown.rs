//! Tables of Markdown.

pub fn table<const COLUMNS: usize>(
    heads: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let rule = format!("|{}\n", " --- |".repeat(COLUMNS));
    let rows: String = rows.into_iter().map(|cells| format!("| {} |\n", cells.join(" | "))).collect();
    format!("| {} |\n{rule}{rows}", heads.join(" | "))
}
