// Package typeset writes tables and texts for people. It knows tables (package stages) and nothing of review
// folders or runs:
//
//   - text.go: other people's texts in Markdown and in CSV files, where they must do no harm.
//   - number.go: numbers, with the significant digits that are published or the decimals of a column.
//   - grid.go: a table as it is shown, with the intervals of its numbers.
//   - marks.go: its asterisks, the same wherever it is shown.
//   - markdown.go, latex.go: a grid as a table of Markdown, and as a tabular of LaTeX.
//   - short.go: a grid for a page: as few numbers in a row as one reads without scrolling.
//   - pivot.go: a long table spread over columns.
package typeset
