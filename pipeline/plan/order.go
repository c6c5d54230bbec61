package plan

import (
	"strconv"
	"strings"
)

// topological returns the stages so that each comes after those it takes from,
// otherwise as written. Stages on a cycle are left out, and complained about.
func (l *loader) topological() []*stageDecl {
	const (
		unseen = iota
		open
		closed
	)
	mark := map[*stageDecl]int{}
	onCycle := map[*stageDecl]bool{}
	var order, path []*stageDecl
	var visit func(s *stageDecl)
	visit = func(s *stageDecl) {
		mark[s] = open
		path = append(path, s)
		for _, in := range s.inputs {
			for _, w := range in.wires {
				switch {
				case w.from == nil:
				case mark[w.from] == unseen:
					visit(w.from)
				case mark[w.from] == open:
					l.cycle(path, w, onCycle)
				}
			}
		}
		path = path[:len(path)-1]
		mark[s] = closed
		if !onCycle[s] {
			order = append(order, s)
		}
	}
	for _, s := range l.exp.stages {
		if mark[s] == unseen {
			visit(s)
		}
	}
	return order
}

// cycle complains about the edge w that leads from the end of path back into it.
func (l *loader) cycle(path []*stageDecl, w *wireDecl, on map[*stageDecl]bool) {
	from := len(path) - 1
	for path[from] != w.from {
		from--
	}
	var b strings.Builder
	b.WriteString("cycle: ")
	for _, s := range path[from:] {
		on[s] = true
		b.WriteString(s.name + " → ")
		if b.Len() > 1000 {
			b.WriteString("… " + strconv.Itoa(len(path)-from) + " stages … → ")
			break
		}
	}
	for _, s := range path[from:] {
		on[s] = true
	}
	b.WriteString(w.from.name)
	l.at(w.node, "", b.String())
}
