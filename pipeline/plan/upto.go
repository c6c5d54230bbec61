package plan

// UpTo returns the part of p that the given cell needs, itself included. Keys
// and names stay what they are in p; nothing is published.
func (p *Plan) UpTo(cell *Cell) *Plan {
	needed := map[*Cell]bool{cell: true}
	for i := len(p.Cells) - 1; i >= 0; i-- { // consumers come after what they read
		if !needed[p.Cells[i]] {
			continue
		}
		for _, in := range p.Cells[i].Inputs {
			for _, e := range in.Edges {
				needed[e.From] = true
			}
		}
	}
	part := *p
	part.Steps, part.Cells, part.Publish = nil, nil, nil
	steps := map[*Step]*Step{}
	copies := map[*Cell]*Cell{}
	for _, c := range p.Cells {
		if !needed[c] {
			continue
		}
		step := steps[c.Step]
		if step == nil {
			s := *c.Step
			s.Cells = nil
			step = &s
			steps[c.Step] = step
		}
		n := *c
		n.Index, n.Step, n.Inputs = len(part.Cells), step, make([]Input, len(c.Inputs))
		for i, in := range c.Inputs {
			for _, e := range in.Edges {
				e.From = copies[e.From]
				n.Inputs[i].Edges = append(n.Inputs[i].Edges, e)
			}
		}
		step.Cells = append(step.Cells, &n)
		part.Cells = append(part.Cells, &n)
		copies[c] = &n
	}
	for _, s := range p.Steps {
		if step := steps[s]; step != nil {
			part.Steps = append(part.Steps, step)
		}
	}
	return &part
}
