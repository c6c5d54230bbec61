package plan

// UpTo returns the part of p that the given cells need, these included. Keys and names stay as in p;
// nothing is published.
func (p *Plan) UpTo(cells ...*Cell) *Plan {
	needed := map[*Cell]bool{}
	for _, c := range cells {
		needed[c] = true
	}
	for i := len(p.Cells) - 1; i >= 0; i-- { // consumers come after the cells that they read
		if needed[p.Cells[i]] {
			for _, in := range p.Cells[i].Inputs {
				for _, e := range in.Edges {
					needed[e.From] = true
				}
			}
		}
	}
	part := *p
	part.Steps, part.Cells, part.Publish = nil, nil, nil
	copies := map[*Cell]*Cell{}
	for _, s := range p.Steps {
		step := *s
		step.Cells = nil
		for _, c := range s.Cells {
			if !needed[c] {
				continue
			}
			n := *c
			n.Index, n.Step, n.Inputs = len(part.Cells), &step, make([]Input, len(c.Inputs))
			for i, in := range c.Inputs {
				for _, e := range in.Edges {
					e.From = copies[e.From]
					n.Inputs[i].Edges = append(n.Inputs[i].Edges, e)
				}
			}
			step.Cells, part.Cells = append(step.Cells, &n), append(part.Cells, &n)
			copies[c] = &n
		}
		if len(step.Cells) > 0 {
			part.Steps = append(part.Steps, &step)
		}
	}
	return &part
}
