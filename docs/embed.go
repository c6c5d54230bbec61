// Package docs holds what the command carries of the pages in this folder.
package docs

import (
	_ "embed"
	"strings"
)

//go:embed language.md
var language string

//go:embed coming-from.md
var comingFrom string

//go:embed precision.csv
var precision string

// Precision returns the table of stages' deviations in precisions other than float32: CSV with the columns
// stage, precision, deviation, net, tolerance. A stage without a tolerance deviates too much.
func Precision() string { return precision }

//go:embed architectures.csv
var architectures string

// Architectures returns which methods lead on which architecture, as measured, a row each.
func Architectures() string { return architectures }

// ComingFrom returns the page with the names that other libraries have for stages.
func ComingFrom() string { return comingFrom }

// Example returns the first example of language.md, an experiment that has every key of the language, with
// comments.
func Example() string {
	_, rest, _ := strings.Cut(language, "\n```yaml")
	_, rest, _ = strings.Cut(rest, "\n")
	example, _, _ := strings.Cut(rest, "```")
	return example
}
