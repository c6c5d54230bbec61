package publish

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/runexp/runexp/pipeline/typeset"
	"github.com/runexp/runexp/stages"
)

// listedGuesses is how many cells of a stage are compared with guessing one by one.
const listedGuesses = 6

// Warnings returns paragraphs of Markdown on scores that are hardly better than guessing: an answer about a
// net that guesses says little.
func (f *Folder) Warnings() []string {
	warnings, _ := f.guesses()
	return warnings
}

// Guesses returns paragraphs of Markdown that compare scores with guessing.
func (f *Folder) Guesses() []string {
	_, lines := f.guesses()
	return lines
}

func (f *Folder) guesses() (warnings, lines []string) {
	type guess struct {
		*Mean
		cell string
		n    int
	}
	of := map[string][]guess{} // by stage
	for _, l := range f.Lines {
		for i := range l.Means {
			if m := &l.Means[i]; m.Chance > 0 && m.Direction == stages.Higher && !math.IsNaN(m.Value) {
				of[stageOf(l.Cell)] = append(of[stageOf(l.Cell)], guess{m, l.Cell, l.N})
			}
		}
	}
	for _, stage := range slices.Sorted(maps.Keys(of)) {
		all := of[stage]
		var each []string
		for _, g := range all {
			if hardlyBetter(g.Value, g.Chance) {
				warnings = append(warnings, fmt.Sprintf("> **Warning:** `%s` is %s, and guessing gives %s. "+
					"What follows says little.", g.cell, typeset.Brief(g.Value, 3),
					typeset.Brief(g.Chance, 3)))
			}
			_, place, _ := strings.Cut(strings.TrimSuffix(g.cell, "]"), "[")
			each = append(each, strings.TrimSpace(typeset.Inline(place)+" "+typeset.Brief(g.Value, 3)))
		}
		if len(all) > listedGuesses {
			slices.SortStableFunc(all, func(a, b guess) int { return cmp.Compare(a.Value, b.Value) })
			low, high := all[0], all[len(all)-1]
			each = []string{fmt.Sprintf("from %s (`%s`) to %s (`%s`)",
				typeset.Brief(low.Value, 3), low.cell, typeset.Brief(high.Value, 3), high.cell)}
		}
		lines = append(lines, fmt.Sprintf("%s: %s over %s; guessing gives %s.", typeset.Inline(stage),
			strings.Join(each, ", "), count(all[0].n, "item"), typeset.Brief(all[0].Chance, 3)))
	}
	if n := len(warnings) - listedGuesses; n > 0 {
		warnings = append(warnings[:listedGuesses], fmt.Sprintf("> And %d more.", n))
	}
	return warnings, lines
}

// hardlyBetter reports whether a share is hardly better than that of guessing: less than twice as large, or
// of two classes, less than half the way to 1.
func hardlyBetter(share, chance float64) bool {
	return share < chance+min(chance, (1-chance)/2)
}

// published sorts a list by stage, in the order of the published ones.
func published[T any](f *Folder, list []T, stage func(T) string) []T {
	return slices.SortedStableFunc(slices.Values(list), func(a, b T) int {
		return cmp.Compare(f.rank(stage(a)), f.rank(stage(b)))
	})
}

// Answers lists the texts in the order of the published stages.
func (f *Folder) Answers() []*Passage {
	return published(f, f.Passages, func(p *Passage) string { return stageOf(p.Cell) })
}

// Opening returns the first sentence of a README.md without an answer: who comes first in a table, or else
// which figures and tables are shown.
func (f *Folder) Opening() string {
	if first := f.First(); first != "" {
		return first
	}
	var figures, tables []string
	for _, p := range f.Pictures {
		figures = append(figures, typeset.Inline(p.Stage))
	}
	for _, s := range f.Sheets {
		tables = append(tables, typeset.Inline(s.Stage))
	}
	var shown []string
	for _, of := range []struct {
		noun  string
		names []string
	}{{"figure", distinct(figures, itself)}, {"table", distinct(tables, itself)}} {
		if n := len(of.names); n == 1 {
			shown = append(shown, "the "+of.noun+" "+of.names[0])
		} else if n > 1 {
			shown = append(shown, "the "+of.noun+"s "+some(of.names[:n-1], namedCells)+" and "+of.names[n-1])
		}
	}
	if shown == nil {
		return ""
	}
	return "Shown: " + strings.Join(shown, ", and ") + ". No claim about what they show is tested."
}

// First returns a sentence on who comes first in the first table that has a number with a direction. It
// returns "" for a table with several such numbers or several keys, which has no single winner.
func (f *Folder) First() string {
	for _, s := range published(f, f.Sheets, func(s *Sheet) string { return s.Stage }) {
		undirected := func(n stages.Column) bool { return typeset.Arrows[n.Direction] == "" }
		scores := slices.DeleteFunc(slices.Clone(s.Numbers), undirected)
		switch {
		case len(scores) == 0:
			continue
		case len(scores) > 1 || len(s.Tables) > 1 || len(s.Keys) != 1 || s.Keys[0] == "item":
			return ""
		}
		return f.podium(s, scores[0])
	}
	return ""
}

// podium returns a sentence on the first three rows of a table by one of its numbers. Equal numbers tie.
func (f *Folder) podium(s *Sheet, n stages.Column) string {
	value := func(r *TableRow) float64 {
		if x, ok := r.number(n.Name); ok && !r.Old {
			return x
		}
		return math.NaN()
	}
	rows := slices.Clone(s.Rows)
	rows = slices.DeleteFunc(rows, func(r *TableRow) bool { return math.IsNaN(value(r)) })
	if len(rows) < 2 {
		return ""
	}
	slices.SortStableFunc(rows, func(x, y *TableRow) int {
		if n.Direction == stages.Higher {
			x, y = y, x
		}
		return cmp.Compare(value(x), value(y))
	})
	var first, next []string
	for i, r := range rows {
		name := "**" + typeset.Inline(f.label(s, 0, r.get(s.Keys[0]))) + "**"
		if value(r) == value(rows[0]) {
			first = append(first, name)
		} else if i < 3 {
			next = append(next, name+" ("+typeset.Decimals(r.get(n.Name), n.Digits)+")")
		}
	}
	by := fmt.Sprintf("By %s (%s is better),", typeset.Inline(n.Name), n.Direction)
	best := typeset.Decimals(rows[0].get(n.Name), n.Digits)
	switch last := len(first) - 1; {
	case len(first) == len(rows):
		return fmt.Sprintf("%s all %d tie at %s.", by, len(rows), best)
	case last > 0:
		names := some(first[:last], namedCells) + " and " + first[last]
		by = fmt.Sprintf("%s %s tie first of %d (%s)", by, names, len(rows), best)
	default:
		by = fmt.Sprintf("%s %s (%s) comes first of %d", by, first[0], best, len(rows))
	}
	if len(next) > 0 {
		by += ", then " + strings.Join(next, " and ")
	}
	return by + "."
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?](\s+[\p{Lu}*]|\s*$)`)
	markup      = regexp.MustCompile("\\*\\*|`|\\\\([[:punct:]])")
)

// Answer returns the first sentence of the answer as plain text, after the first warning if there is one;
// "" if this run has no answer.
func (f *Folder) Answer() string {
	var texts []string
	for _, p := range f.Answers() {
		if p.Old {
			break
		}
		texts = append(texts, p.Body)
	}
	if len(f.Passages) == 0 {
		texts = []string{f.First()}
	}
	sentence := firstSentence(texts)
	if w := f.Warnings(); len(w) > 0 && sentence != "" {
		return plainText(strings.TrimPrefix(w[0], "> ")) + " " + sentence
	}
	return sentence
}

// firstSentence returns the first sentence of the first text that begins with one, as plain text.
func firstSentence(texts []string) (sentence string) {
	for _, text := range texts {
		if sentence = firstParagraph(text); sentence != "" {
			break
		}
	}
	if at := sentenceEnd.FindStringIndex(sentence); at != nil {
		sentence = sentence[:at[0]+1]
	}
	return plainText(sentence)
}

// plainText removes the markup that our own texts have, and invisible characters.
func plainText(text string) string {
	text = html.UnescapeString(markup.ReplaceAllString(text, "$1"))
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, text)
}

// firstParagraph returns the first paragraph of a Markdown text as one line, "" if the text begins with a
// heading, a list, a table or a quotation.
func firstParagraph(body string) string {
	paragraph, _, _ := strings.Cut(strings.TrimSpace(body), "\n\n")
	text := strings.Join(strings.Fields(paragraph), " ")
	emphasis := strings.HasPrefix(text, "*") && !strings.HasPrefix(text, "**")
	if emphasis || strings.IndexAny(text, "#>|-<") == 0 {
		return ""
	}
	return text
}
