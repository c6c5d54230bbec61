package plan

import "strings"

// topological returns the stages in an order in which each comes after those that it reads, and otherwise
// as written. Stages on a cycle are left out, with a diagnostic.
func (l *loader) topological() []*stageDecl {
	const visited = -1
	depth, onCycle := map[*stageDecl]int{}, map[*stageDecl]bool{} // depth: in path, from 1, or visited
	var order, path []*stageDecl
	var visit func(s *stageDecl)
	visit = func(s *stageDecl) {
		path = append(path, s)
		depth[s] = len(path)
		for _, in := range s.inputs {
			for _, w := range in.wires {
				if d := depth[w.from]; d > 0 {
					for _, s := range path[d-1:] {
						onCycle[s] = true
					}
					l.cycle(path[d-1:], w)
				} else if d == 0 && w.from != nil {
					visit(w.from)
				}
			}
		}
		path = path[:len(path)-1]
		depth[s] = visited
		if !onCycle[s] {
			order = append(order, s)
		}
	}
	for _, s := range l.exp.stages {
		if depth[s] == 0 {
			visit(s)
		}
	}
	return order
}

// cycle reports the edge w, which leads from the end of path to its beginning.
func (l *loader) cycle(path []*stageDecl, w *wireDecl) {
	var b strings.Builder
	for _, s := range path {
		if b.WriteString(s.name + " → "); b.Len() > 1000 {
			b.WriteString("… → ")
			break
		}
	}
	l.report(w.node, "", "cycle: %s%s", b.String(), w.from.name)
}
