package pipeline

import (
	"fmt"

	"github.com/runexp/runexp/stages"
)

// said are the warnings of one reason that a cell's chunks gave.
type said struct {
	first stages.Warning // about the item whose id sorts first, whatever the order of the chunks
	n     int
}

func (s *said) String() string {
	switch {
	case s.n == 1:
		return s.first.String()
	case s.first.Item != "":
		return fmt.Sprintf("%d items, such as %q: %s", s.n, s.first.Item, s.first.Text)
	}
	return fmt.Sprintf("%s (%d times the like)", s.first.Text, s.n)
}

// keepSaid keeps a chunk's warnings until its cell is finished.
func (n *node) keepSaid(list []stages.Warning) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range list {
		var of *said
		for _, s := range n.said {
			if s.first.Reason == w.Reason {
				of = s
			}
		}
		if of == nil {
			of = &said{first: w}
			n.said = append(n.said, of)
		}
		if of.n++; w.Item < of.first.Item || w.Item == of.first.Item && w.Text < of.first.Text {
			of.first = w
		}
	}
}

// tellSaid tells the user what n warned of, each reason once.
func (r *run) tellSaid(n *node) {
	n.mu.Lock()
	list := n.said
	n.said = nil
	n.mu.Unlock()
	for _, s := range list {
		r.warn(n.Cell, "%s", s)
	}
}
