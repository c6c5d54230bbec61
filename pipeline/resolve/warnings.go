package resolve

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
)

// cellWarnings are the warnings of one reason from the chunks of a cell.
type cellWarnings struct {
	first stages.Warning // of the item whose id sorts first, regardless of the order of the chunks
	n     int
	once  bool // once for all cells
}

func (w *cellWarnings) String() string {
	switch {
	case w.n == 1:
		return w.first.String()
	case w.first.Item != "":
		return fmt.Sprintf("%d items, such as %q: %s", w.n, w.first.Item, w.first.Text)
	}
	return fmt.Sprintf("%s (%d such warnings)", w.first.Text, w.n)
}

// AddWarnings keeps the warnings of a chunk until its cell is finished.
func (n *Cell) AddWarnings(list []stages.Warning) {
	if len(list) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range list {
		sameReason := func(known *cellWarnings) bool { return known.first.Reason == w.Reason }
		k := slices.IndexFunc(n.outcome.warnings, sameReason)
		if k < 0 {
			k = len(n.outcome.warnings)
			n.outcome.warnings = append(n.outcome.warnings, &cellWarnings{first: w})
		}
		same := n.outcome.warnings[k]
		if same.n++; w.Item < same.first.Item || w.Item == same.first.Item && w.Text < same.first.Text {
			same.first = w
		}
	}
}

// AddOnce keeps a warning that no other cell repeats.
func (n *Cell) AddOnce(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := &cellWarnings{stages.Warning{Reason: text, Text: text}, 1, true}
	n.outcome.warnings = append(n.outcome.warnings, w)
}

// TakeWarnings returns n's warnings, each reason once, and removes them. For a text that is given once for
// all cells, once reports whether it is new.
func (n *Cell) TakeWarnings(once func(text string) bool) (texts []string) {
	n.mu.Lock()
	list := n.outcome.warnings
	n.outcome.warnings = nil
	n.mu.Unlock()
	for _, w := range list {
		if !w.once || once(w.first.Text) {
			texts = append(texts, w.String())
		}
	}
	return texts
}
