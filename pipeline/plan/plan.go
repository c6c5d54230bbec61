package plan

import (
	"iter"
	"slices"

	"github.com/runexp/runexp/stages"
)

// A Plan is an experiment expanded into cells: checked, with every parameter decoded and every edge
// resolved. It is immutable.
type Plan struct {
	Name, Title string
	File        string  // the experiment file, as the user named it
	Seed        uint64  // of the stages without a seed of their own
	Steps       []*Step // in topological order, implied steps included
	Cells       []*Cell // in topological order; Cell.Index is the position
	Publish     []*Step
	Order       stages.Order // of every axis: the ids as the experiment writes them
	Labels      stages.Names // names of the ids that have a field label
	Families    stages.Names // families of the ids that have a field family
	Limit       int          // largest number of sources of a cell; 0 for all
	Narrowed    []string     // what --only, --limit and --set changed, in words
	Warnings    Diags        // about settings that are valid and probably not intended

	Again []Again // the inputs whose cells are computed again for a part of their items

	decl    *experimentDecl
	files   map[string]Diag    // files that parameters name, with the first place, without a message
	remotes map[string]*Remote // the fetched ones of these, by path
	remarks *remarks           // the results of Remarks
	counts  *counts            // of sources
}

// Again is an input of a cell that is fed by copies of the cells on another input, and of cells that these
// read: see [stages.Again].
type Again struct {
	Consumer *Cell
	Of       map[*Cell]*Cell // by copy: the cell that it computes again
	Value    string          // of the parameter that is replaced
	Count    int             // items that are drawn; 0 if what is computed before decides it
}

// A Step is one stage of an experiment: a name, and a cell for every combination of its axes that exists.
type Step struct {
	Name     string
	Implied  bool     // inserted for a port's Via or Else
	Axes     []string // sorted
	Cells    []*Cell
	Possible int  // combinations before only, exclude and missing upstream cells
	Keep     bool // store: keep; otherwise item payloads live until their consumers have read them
	Drop     bool // missing: drop
}

// A Cell is one stage at one combination of axes: the unit of explanation, retry and review.
type Cell struct {
	Index  int
	Step   *Step
	Coord  []stages.Coord // sorted by axis
	Stage  *stages.Stage
	Params any    // the result of Stage.NewParams, decoded and validated
	Seed   uint64 // of its random numbers; 0 if the stage draws none
	// Replicates are the collapsed axes along which scores are averaged, item by item: see
	// [stages.Port.Averages].
	Replicates []string
	Inputs     []Input // in the order of Stage.Inputs
}

// Primary returns the input for whose items an itemwise cell is called: the first wired input of items that
// isn't collapsed. It is -1 for a cell that makes its items from sources, and if over collapses all inputs.
func (c *Cell) Primary() int {
	for k, in := range c.Inputs {
		if c.Stage.Relation != stages.Whole && c.Stage.Inputs[k].Type.Items && len(in.Edges) > 0 &&
			len(in.Edges[0].Coord) == 0 {
			return k
		}
	}
	return -1
}

// Leading returns the inputs that decide for which items c is called: its primary one or, if over collapses
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

// Kept reports whether the bytes of c's results are kept.
func (c *Cell) Kept() bool { return c.Step.Keep || c.Stage.Relation == stages.Whole }

// MayShare reports whether c and d are of stages of one group, see [stages.SharedRun], run the model in one
// precision, and read the same outputs.
func (c *Cell) MayShare(d *Cell) bool {
	sameEdge := func(e, f Edge) bool { return e.From == f.From && e.Port == f.Port }
	sameInput := func(x, y Input) bool { return slices.EqualFunc(x.Edges, y.Edges, sameEdge) }
	shared := c.Stage.Shared
	return shared != nil && shared == d.Stage.Shared &&
		stages.PrecisionOf(c.Params) == stages.PrecisionOf(d.Params) &&
		slices.EqualFunc(c.Inputs, d.Inputs, sameInput)
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

// An Input is the edges of a port: none, one, or one for every combination of the collapsed and stacked
// axes, sorted by coordinate.
type Input struct{ Edges []Edge }

// An Edge connects an output port of a cell to an input port.
type Edge struct {
	Coord []stages.Coord // the coordinates on the collapsed and stacked axes, sorted by axis
	From  *Cell
	Port  int // index into From.Stage.Outputs
}

// Base returns the edge of the value to which the edge's own value refers: see [stages.Port.Base].
func (e Edge) Base() (base Edge, ok bool) {
	if e.Port < 0 || e.From.Stage.Outputs[e.Port].Base == "" {
		return Edge{}, false
	}
	in := portNamed(e.From.Stage.Inputs, e.From.Stage.Outputs[e.Port].Base)
	return e.From.Inputs[in].Edges[0], true
}

// An Output is an output port of a cell.
type Output struct {
	From *Cell
	Port int
}

// Calls returns, for each cell, the output for whose items the cell is called, one by one and in order; a
// cell that makes its list of items has an output of its own. Cells with the same output are aligned
// without comparing ids.
func (p *Plan) Calls() []Output {
	calls := make([]Output, len(p.Cells))
	for i, c := range p.Cells {
		calls[i] = Output{c, 0}
		if c.Stage.Relation != stages.Each && c.Stage.Relation != stages.Expand {
			continue
		}
		var roots []Output // common to all inputs that decide about the items
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

// Root returns the output whose items correspond to the edge's items one by one, in order, given
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
