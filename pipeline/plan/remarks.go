package plan

import (
	"slices"
	"sync"
)

// remarks are what the stages of a plan tell, asked once.
type remarks struct {
	once sync.Once
	all  Diags
}

// Remarks returns what stages tell of the files that they read from: which of them aren't used, and what is
// taken otherwise than it is written. It lists the sources of data sets, once.
func (p *Plan) Remarks() Diags {
	p.remarks.once.Do(func() {
		var ds diagnostics
		told := map[string]bool{}
		for _, c := range p.Cells {
			decl := p.decl.stage(c.Step.Name)
			if c.Stage.Remarks == nil || decl == nil {
				continue
			}
			for _, text := range c.remarks() {
				if key := c.Step.Name + "\n" + text; !told[key] {
					told[key] = true
					ds.report(decl.key, "", "%s: %s", c.Step.Name, text)
				}
			}
		}
		p.remarks.all = ds.sorted()
	})
	return slices.Clone(p.remarks.all)
}

// remarks calls the stage's Remarks. A panic in it says nothing: that of Sources is reported.
func (c *Cell) remarks() (list []string) {
	var err error
	defer Catch(&err)
	return c.Stage.Remarks(c.Params)
}
