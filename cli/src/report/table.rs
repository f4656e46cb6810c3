//! The tables of the terminal as HTML.

use maud::{Markup, html};
use redisbench_benchmark::human::{are, counted, shorten};

use crate::render::grid::Cell;
use crate::render::{Grid, Style};

/// The most rows of a table.
pub const ROWS: usize = 100;

/// The most bytes of a cell.
const CELL: usize = 256;

/// A table with a caption, and the number of rows that it omits.
pub fn table(grid: &Grid) -> Markup {
    let (heads, rows) = grid.rows();
    let title = heads.first().map_or("", Cell::text);
    html! {
        div.scroll tabindex="0" role="group" aria-label=(title) {
            table {
                caption { (title) }
                thead {
                    tr {
                        td {}
                        @for (column, head) in heads.iter().enumerate().skip(1) {
                            th scope="col" class=[grid.is_left(column).then_some("left")] { (head.text()) }
                        }
                    }
                }
                tbody {
                    @for row in rows.iter().take(ROWS) {
                        tr {
                            @for (column, cell) in row.iter().enumerate() {
                                @if column == 0 {
                                    th scope="row" { (marked(cell)) }
                                } @else {
                                    td class=[grid.is_left(column).then_some("left")] { (marked(cell)) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if let Some(more @ 1..) = rows.len().checked_sub(ROWS).map(|more| more as u64) {
            p { (counted(more, "more row")) " " (are(more)) " in the full result." }
        }
    }
}

/// The text of a cell, with a sign where its colour has a meaning.
fn marked(cell: &Cell) -> Markup {
    let text = shorten(cell.text(), CELL);
    html! {
        @match cell.style() {
            Style::Plain | Style::Dim => { (text) }
            Style::Bold => { b { (text) } }
            Style::Good => { span.good { "✓ " (text) } }
            Style::Doubtful => { span.doubtful { "△ " (text) } }
            Style::Bad => { span.bad { "✗ " (text) } }
        }
    }
}
