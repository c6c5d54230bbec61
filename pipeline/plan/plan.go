package plan

import (
	"iter"
	"slices"

	"github.com/runexp/runexp/stages"
)

// A Plan is an experiment expanded into cells: checked, with every parameter decoded and every edge resolved.
// It's immutable.
type Plan struct {
	Name, Title string
	File        string // the experiment file, as the user named it
	Seed        uint64
	Steps       []*Step // in topological order, implied steps included
	Cells       []*Cell // in topological order; Cell.Index is the position
	Publish     []*Step
	Order       stages.Order // of every axis: the ids as the experiment writes them
	Labels      stages.Names // of the ids that have a field label
	Families    stages.Names // of the ids that have a field family
	Limit       int          // at most so many sources a cell; 0 for all
	Narrowed    []string     // what --only, --limit and --set changed, in words
	Warnings    Diags        // what isn't wrong and is probably not meant

	decl    *experimentDecl
	files   map[string]Diag    // that parameters name: where each stands, without a message
	remotes map[string]*Remote // of these, by their paths, what is fetched from an address
	remarks *remarks           // what Remarks returns
}

// A Step is one stage of an experiment: a name, and a cell for every combination of its axes that exists.
type Step struct {
	Name     string
	Implied  bool     // put in by the engine, for a port's Via or Else
	Axes     []string // sorted
	Cells    []*Cell
	Possible int  // combinations before only, exclude and what doesn't exist upstream
	Keep     bool // store: keep; otherwise item payloads live until their consumers have them
	Drop     bool // missing: drop
}

// A Cell is one stage at one combination of axes: the unit of explanation, retry and review.
type Cell struct {
	Index  int
	Step   *Step
	Coord  []stages.Coord // sorted by axis
	Stage  *stages.Stage
	Params any     // what Stage.NewParams returns, decoded and validated
	Inputs []Input // in the order of Stage.Inputs
}

// Primary returns the input whose items an itemwise cell is called for: the first of items that is wired and
// not collapsed. It is -1 for a cell that makes its items from sources, and where over collapses all.
func (c *Cell) Primary() int {
	for k, in := range c.Inputs {
		if c.Stage.Relation != stages.Whole && c.Stage.Inputs[k].Type.Items && len(in.Edges) > 0 &&
			len(in.Edges[0].Coord) == 0 {
			return k
		}
	}
	return -1
}

// Leading returns the inputs that decide which items c is called for: its primary one or, where over collapses
// all inputs of items, all of these.
func (c *Cell) Leading() (ports []int) {
	if p := c.Primary(); p >= 0 {
		return []int{p}
	}
	for p := range c.Inputs {
		if c.Stage.Inputs[p].Type.Items && len(c.Inputs[p].Edges) > 0 {
			ports = append(ports, p)
		}
	}
	return ports
}

// Edges yields c's edges, input by input.
func (c *Cell) Edges() iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		for p := range c.Inputs {
			for _, e := range c.Inputs[p].Edges {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// An Input is what's wired to one port: nothing, one edge, or one for every combination of the collapsed and
// stacked axes, sorted by coordinate.
type Input struct{ Edges []Edge }

// An Edge hands one output port of a cell to an input port.
type Edge struct {
	Coord []stages.Coord // place on the collapsed and stacked axes, sorted by axis
	From  *Cell
	Port  int // index into From.Stage.Outputs
}

// Base returns the edge of the value that the edge's own refers to: see [stages.Port.Base].
func (e Edge) Base() (base Edge, ok bool) {
	if e.Port < 0 || e.From.Stage.Outputs[e.Port].Base == "" {
		return Edge{}, false
	}
	in := portNamed(e.From.Stage.Inputs, e.From.Stage.Outputs[e.Port].Base)
	return e.From.Inputs[in].Edges[0], true
}

// An Output is an output port of a cell, as the place that items come from.
type Output struct {
	From *Cell
	Port int
}

// Calls returns, by the index of a cell, the output whose items the cell is called for, one by one and in order:
// its own where it makes the list of them. Cells with equal ones are aligned without a look at any id.
func (p *Plan) Calls() []Output {
	calls := make([]Output, len(p.Cells))
	for i, c := range p.Cells {
		calls[i] = Output{c, 0}
		if c.Stage.Relation != stages.Each && c.Stage.Relation != stages.Expand {
			continue
		}
		var roots []Output // that all inputs which decide about the items have in common
		for _, in := range c.Leading() {
			for _, e := range c.Inputs[in].Edges {
				if root := e.Root(calls); !slices.Contains(roots, root) {
					roots = append(roots, root)
				}
			}
		}
		if len(roots) == 1 {
			calls[i] = roots[0]
		}
	}
	return calls
}

// Root returns the output whose items those of the edge correspond to one by one, in order, given
// [Plan.Calls].
func (e Edge) Root(calls []Output) Output {
	if e.From.Stage.Relation == stages.Each {
		return calls[e.From.Index]
	}
	return Output{e.From, e.Port}
}

// String returns the cell's name, maps[method=ig,model=vgg].
func (c *Cell) String() string {
	if len(c.Coord) == 0 {
		return c.Step.Name
	}
	b := append(make([]byte, 0, 128), c.Step.Name...)
	return string(append(appendCoord(append(b, '['), c.Coord), ']'))
}

// CoordString writes coordinates as method=ig,model=vgg.
func CoordString(coord []stages.Coord) string {
	return string(appendCoord(make([]byte, 0, 128), coord))
}

func appendCoord(b []byte, coord []stages.Coord) []byte {
	for i, c := range coord {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, c.Axis...), '='), c.ID...)
	}
	return b
}
