package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
)

// A shown is the contents of a page of images. The fact "shown" of the port figure holds it as JSON, for
// cells/*.jsonl of a review folder.
type shown struct {
	Columns []string   `json:"columns,omitempty"` // ids
	Items   []string   `json:"items,omitempty"`   // ids of images
	Rows    [][]string `json:"rows,omitempty"`    // ids on the axes of rows, if there are such axes
}

// add lists an image and the ids of its row, each once.
func (s *shown) add(item string, row []string) {
	if !slices.Contains(s.Items, item) {
		s.Items = append(s.Items, item)
	}
	same := func(ids []string) bool { return slices.Equal(ids, row) }
	if len(row) > 0 && !slices.ContainsFunc(s.Rows, same) {
		s.Rows = append(s.Rows, row)
	}
}

// A preview is the PNG of a page.
type preview struct {
	dots   int     // per inch, at least
	whole  float64 // dots per inch at which a pixel of a map is one dot
	budget int     // in kB
}

// The range of dots per inch of a preview.
const (
	fewestDots = 72
	mostDots   = 300
)

// choices returns the resolutions that a preview may have, in order: first those at which a pixel of a map
// is a whole number of dots, then lower ones.
func (p preview) choices() []int {
	best, list := p.dots, []int{144, 108, fewestDots}
	for k := 1.0; k*p.whole <= mostDots && p.whole >= 1; k++ {
		dots := int(math.Round(k * p.whole))
		if list = append(list, dots); dots >= p.dots {
			best = dots
			break
		}
	}
	list = slices.DeleteFunc(append(list, best), func(d int) bool { return d > best || d < fewestDots })
	slices.SortFunc(list, func(a, b int) int { return b - a })
	return slices.Compact(list)
}

// draw returns the file with the highest resolution that the budget allows, or else the lowest. The remark
// is a sentence about that, "" if the file is within the budget at the intended resolution. Resolutions
// whose number of dots exceeds the budget by far aren't tried.
func (p preview) draw(f chart.Figure) (file []byte, remark string) {
	before := 0
	for _, dots := range p.choices() {
		share := float64(dots*dots) / float64(max(before*before, 1))
		if dots > fewestDots && before > 0 && share*float64(len(file)) > 1300*float64(p.budget) {
			continue
		}
		file = f.PNGAt(dots)
		switch fits := len(file) <= 1000*p.budget; {
		case !fits && dots == fewestDots:
			return file, fmt.Sprintf(" The PNG with %d dots per inch exceeds %d kB.", dots, p.budget)
		case fits && before > 0:
			return file, fmt.Sprintf(" The PNG has %d dots per inch: with more it would exceed %d kB.", dots,
				p.budget)
		case fits:
			return file, ""
		}
		before = dots
	}
	return file, remark
}

// setPage writes a page of images to all ports, with its contents.
func setPage(e *stages.Env, page *chart.Page, p preview, caption string, list shown) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	f := page.Figure()
	file, remark := p.draw(f)
	setFile(e, "figure", "svg", f.SVG(), caption)
	setFile(e, "png", "png", file, caption+remark)
	setFile(e, "pdf", "pdf", f.PDF(), caption)
	e.OutFacts["figure"]["shown"] = string(text)
	if len(file) > 1000*p.budget {
		e.OutFacts["png"]["unpublished"] = "larger than the budget"
	}
	return nil
}
