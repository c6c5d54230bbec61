package pipeline

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
)

// cellWarnings are the warnings of one reason that the chunks of a cell gave.
type cellWarnings struct {
	first stages.Warning // of the item whose id sorts first, whatever the order of the chunks
	n     int
	once  bool // for all cells
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

// addWarnings keeps the warnings of a chunk until its cell is finished.
func (n *node) addWarnings(list []stages.Warning) {
	if len(list) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range list {
		sameReason := func(known *cellWarnings) bool { return known.first.Reason == w.Reason }
		k := slices.IndexFunc(n.warnings, sameReason)
		if k < 0 {
			n.warnings, k = append(n.warnings, &cellWarnings{first: w}), len(n.warnings)
		}
		same := n.warnings[k]
		if same.n++; w.Item < same.first.Item || w.Item == same.first.Item && w.Text < same.first.Text {
			same.first = w
		}
	}
}

// addOnce keeps a warning that no other cell repeats.
func (n *node) addOnce(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.warnings = append(n.warnings, &cellWarnings{stages.Warning{Reason: text, Text: text}, 1, true})
}

// reportWarnings emits what n warned of, each reason once.
func (r *run) reportWarnings(n *node) {
	n.mu.Lock()
	list := n.warnings
	n.warnings = nil
	n.mu.Unlock()
	for _, w := range list {
		if w.once {
			if _, told := r.told.LoadOrStore(w.first.Text, true); told {
				continue
			}
		}
		r.warn(n.Cell, "%s", w)
	}
}
