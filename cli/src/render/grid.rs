//! Aligned columns.

use redisbench_benchmark::human::count;

use super::paint::{Paint, Style};

const GAP: &str = "   ";

/// Rows of cells. The first column is aligned to the left, the others to the right unless `left` lists them.
#[derive(Debug, Default)]
pub struct Grid {
    rows: Vec<Vec<Cell>>,
    left: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }

    /// A dash for an unknown value.
    pub fn known(text: Option<String>) -> Self {
        text.map_or_else(|| Self::from("-"), Self::from)
    }

    /// A number that should be zero, in this style if it is not.
    pub fn unless_zero(number: u64, style: Style) -> Self {
        Self::styled(count(number), if number == 0 { Style::Plain } else { style })
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    #[cfg(feature = "report")]
    pub fn text(&self) -> &str {
        &self.text
    }

    #[cfg(feature = "report")]
    pub fn style(&self) -> Style {
        self.style
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), style: Style::Plain }
    }
}

impl Grid {
    /// A grid whose first row is `title` and the column heads.
    pub fn new(title: &str, heads: &[&str]) -> Self {
        let mut row = vec![Cell::styled(title, Style::Bold)];
        row.extend(heads.iter().map(|&head| Cell::styled(head, Style::Dim)));
        Self { rows: vec![row], left: vec![0] }
    }

    /// Aligns `column` to the left.
    pub fn left(mut self, column: usize) -> Self {
        self.left.push(column);
        self
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    #[cfg(feature = "report")]
    /// The heads, of which the first is the title, and the other rows.
    pub fn rows(&self) -> (&[Cell], &[Vec<Cell>]) {
        self.rows.split_first().map_or((&[], &[]), |(heads, rows)| (heads.as_slice(), rows))
    }

    /// Returns whether `column` is aligned to the left.
    pub fn is_left(&self, column: usize) -> bool {
        self.left.contains(&column)
    }

    /// The grid as text, after an empty line.
    pub fn text(&self, paint: Paint) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| self.rows.iter().filter_map(|row| row.get(column)).map(width).max().unwrap_or(0))
            .collect();
        let mut text = String::from("\n");
        for row in &self.rows {
            let mut line = String::new();
            // No padding at the end of the line.
            let last = row.iter().rposition(|cell| !cell.text.is_empty()).unwrap_or(0);
            for (column, cell) in row.iter().enumerate().take(last + 1) {
                let padding = " ".repeat(widths[column] - width(cell));
                let painted = paint.apply(cell.style, &cell.text);
                if column > 0 {
                    line.push_str(GAP);
                }
                match (self.is_left(column), column == last) {
                    (true, true) => line.push_str(&painted),
                    (true, false) => line.push_str(&(painted + &padding)),
                    (false, _) => line.push_str(&(padding + &painted)),
                }
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

fn width(cell: &Cell) -> usize {
    cell.text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut grid = Grid::new("Title", &["a", "long head", "text"]).left(3);
        grid.row(["x", "1.00 µs", "2", "first"]);
        grid.row(["yyyyyyy", "", "22", ""]);
        let expected = "
Title           a   long head   text
x         1.00 µs           2   first
yyyyyyy                    22
";
        assert_eq!(grid.text(Paint::none()), expected);
    }

    #[test]
    fn colour_does_not_move_columns() {
        let mut grid = Grid::new("T", &["a"]);
        grid.row([Cell::styled("x", Style::Bad), Cell::from("100")]);
        assert_eq!(grid.text(Paint::always()), "\n\x1b[1mT\x1b[0m     \x1b[2ma\x1b[0m\n\x1b[1;31mx\x1b[0m   100\n");
    }
}
