// Package key makes the digests by which results are found again. Each is of length-prefixed fields, and
// begins with the format of keys and with its purpose:
//
//	digest      made of                                    doesn't depend on     read by
//	recipe      stage, version, program, parameters, seed  the data              cell, group, trial
//	cell        recipe, sources, results read, their       where results were    store: results of a cell
//	            coordinates, pairing and order             made
//	group       recipe, values read, coordinates, facts of the items             store: records of items
//	            ports, time of a refusal
//	item        sources and payloads of a call, and their  other items, recipe   a group: one record
//	            names for stages that show them
//	definition  stage, version, parameters, seed, sources, anything computed     review folders,
//	            definitions of the cells read, their                             speeds of models
//	            ports, coordinates, names and order
//	program     compiler, stage, version, parameters,      the items             store: programs' digests
//	            values read, which ports are wired
//	trial       recipe, values read                        the items             store: refused devices
//
// Results are read by their digests: a cell that ran again and made the same bytes leaves the keys of the
// cells that read it as they were.
//
//   - hash, params: fields of digests; parameters in their canonical form.
//   - key: a cell's identity, and the digests above; ingredients list their parts.
//   - ids, join, sources: the names of items, which items belong together, and the outside inputs of stages.
//   - pairing, order: further properties of items and axes that are part of keys.
package key

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// An Identity is a cell with everything that decides its results, except the results that it reads. It is
// immutable: a cell gets another one when more is known.
type Identity struct {
	Cell    *plan.Cell
	Edges   [][]plan.Edge // edges that pass data on, by input; nil if all do
	Sources *Sources      // of a stage with sources
	Program stages.Digest // of a stage with a program, once it is known
	Key     stages.Digest // of the cell, once all cells that it reads have results
}

// Live returns the edges of an input that pass data on.
func (id *Identity) Live(input int) []plan.Edge {
	if id.Edges != nil {
		return id.Edges[input]
	}
	return id.Cell.Inputs[input].Edges
}

// version returns the version of what makes the results: the stage's, and those of added inputs that are
// wired. The sum rises with each of them.
func (id *Identity) version() int {
	s := id.Cell.Stage
	version := s.Version
	for p := range s.Inputs {
		if port := &s.Inputs[p]; port.Version > 0 && len(id.Live(p)) > 0 {
			version += port.Version
		}
	}
	return version
}

// LacksSources reports whether the stage's sources aren't listed yet.
func (id *Identity) LacksSources() bool { return id.Sources == nil && id.Cell.Stage.Sources != nil }

// LacksProgram reports whether the stage's program isn't known yet.
func (id *Identity) LacksProgram() bool {
	return id.Program == (stages.Digest{}) && id.Cell.Stage.Program != nil
}

// Results are the facts that keys need about the cells that a cell reads, which have finished successfully.
type Results interface {
	Identity(c *plan.Cell) *Identity
	Result(c *plan.Cell, port int) stages.Digest
	IDs(c *plan.Cell, port int) (*IDs, error)
	Definition(c *plan.Cell) (stages.Digest, error)
}

// A Maker makes the keys of a plan's cells.
type Maker struct {
	Plan    *plan.Plan
	Calls   []plan.Output // see [plan.Plan.Calls]
	Params  *Params
	Results Results
	Share   string // the share of the items in keys of cells, "" for all
}

// Cell returns the key of a cell, all of whose inputs have finished: the digest of everything that decides
// its results.
func (m *Maker) Cell(id *Identity) (stages.Digest, error) {
	h := NewHasher("cell")
	if m.Share != "" {
		h.Text(m.Share)
	}
	err := m.writeCell(h, id, nil)
	return h.Sum(), err
}

// Ingredients list the parts of a key in clear.
type Ingredients []store.Ingredient

func (l *Ingredients) add(name, value string) {
	*l = append(*l, store.Ingredient{Name: name, Value: value})
}

// Ingredients returns the parts of the key of a cell, all of whose inputs have finished.
func (m *Maker) Ingredients(id *Identity) (list Ingredients, err error) {
	h := NewHasher("ingredients")
	err = m.writeCell(h, id, &list)
	return list, err
}

// KnownIngredients returns the ingredients of a cell of which some inputs haven't finished: all except the
// results that it reads and the ingredients that depend on these, see [Pending].
func (m *Maker) KnownIngredients(id *Identity) (list Ingredients) {
	m.recipe(id, &list)
	return list
}

// writeCell writes the parts of a cell's key or, if there is a list, adds them to it.
func (m *Maker) writeCell(h *Hasher, id *Identity, list *Ingredients) error {
	c := id.Cell
	h.Digest(m.recipe(id, list))
	h.sources(id.Sources)
	for p := range c.Inputs {
		edges := id.Live(p)
		if len(edges) == 0 && c.Stage.Inputs[p].Added {
			continue
		}
		h.Num(len(edges))
		for _, e := range edges {
			result := m.Results.Result(e.From, e.Port)
			h.coord(e.Coord)
			h.Digest(result)
			if list != nil {
				list.AddResult(c, p, e, result)
			}
		}
	}
	if list == nil {
		err := m.writePairing(h, id)
		m.writeOrder(h, id, nil)
		return err
	}
	m.writeOrder(h, id, list)
	paired := NewHasher(pairing)
	err := m.writePairing(paired, id)
	if d := paired.Sum(); d != noPairing {
		list.add(pairing, d.Short())
	}
	return err
}

var noPairing = NewHasher(pairing).Sum()

// Names of ingredients that stand for several: pairing says which items of several ports belong together
// and, for stages that show them, their names.
const (
	pairing        = "pairing"
	orderOfAxis    = "order of "
	labelsOfAxis   = "labels of "
	familiesOfAxis = "families of "
)

// Pending reports whether an ingredient depends on results that a cell reads, other than by their digests.
func Pending(name string) bool {
	for _, prefix := range []string{"source", orderOfAxis, labelsOfAxis, familiesOfAxis} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == pairing || name == "program"
}

// AddResult adds a result that c reads on an edge.
func (l *Ingredients) AddResult(c *plan.Cell, input int, e plan.Edge, result stages.Digest) {
	l.add(ResultName(c, input, e), result.Short())
}

// ResultName returns the name of the ingredient that c reads on an edge.
func ResultName(c *plan.Cell, input int, e plan.Edge) string { return "in." + inputName(c, input, e) }

// inputName names the result that c reads on an edge: maps[draw=3].
func inputName(c *plan.Cell, input int, e plan.Edge) string {
	name := c.Stage.Inputs[input].Name
	if len(e.Coord) > 0 {
		name += "[" + plan.CoordString(e.Coord) + "]"
	}
	return name
}

// recipe returns the digest of everything that decides a cell's result except its inputs: implementation,
// parameters with defaults, and the seed if it is used. If there is a list, it adds these and the sources.
func (m *Maker) recipe(id *Identity, list *Ingredients) stages.Digest {
	s := id.Cell.Stage
	h := NewHasher("recipe")
	h.Text(s.Name)
	h.Num(id.version())
	if s.Program != nil {
		h.Digest(id.Program)
	}
	m.writeParams(h, id)
	if list == nil {
		return h.Sum()
	}
	list.add("implementation", s.Name)
	list.add("version", strconv.Itoa(id.version()))
	if id.Program != (stages.Digest{}) {
		list.add("program", id.Program.Short())
	}
	m.Params.Each(s, id.Cell.Params,
		func(name string, value []byte) { list.add("with."+name, string(value)) })
	if s.Seeded {
		list.add("seed", strconv.FormatUint(id.Cell.Seed, 10))
	}
	if axes := id.Cell.Replicates; len(axes) > 0 {
		list.add("averaged over", strings.Join(axes, ", "))
	}
	list.addSources(id.Sources)
	return h.Sum()
}

// writeParams writes a cell's parameters, its seed if it draws, and the axes over which scores are averaged.
func (m *Maker) writeParams(h *Hasher, id *Identity) {
	h.params(m.Params, id.Cell.Stage, id.Cell.Params)
	if id.Cell.Stage.Seeded {
		h.Num(int(id.Cell.Seed))
	}
	for _, axis := range id.Cell.Replicates {
		h.Text(axis)
	}
}

// Definition returns the digest that names the task of a cell: implementation, version, parameters and the
// definitions of its inputs, down to the content of the data. It contains nothing computed, so it is the
// same on every machine.
func (m *Maker) Definition(id *Identity) (d stages.Digest, err error) {
	c := id.Cell
	h := NewHasher("definition")
	h.Text(c.Stage.Name)
	h.Num(id.version())
	m.writeParams(h, id)
	h.sources(id.Sources)
	for p := range c.Inputs {
		edges := id.Live(p)
		if len(edges) == 0 && c.Stage.Inputs[p].Added {
			continue
		}
		h.Num(len(edges))
		for _, e := range edges {
			if d, err = m.Results.Definition(e.From); err != nil {
				return d, err
			}
			h.coord(e.Coord)
			h.Digest(d)
			h.Text(e.From.Stage.Outputs[e.Port].Name)
		}
	}
	if c.Stage.Named {
		if err := m.writePairing(h, id); err != nil {
			return d, err
		}
	}
	m.writeOrder(h, id, nil)
	return h.Sum(), nil
}

// Group returns the key under which the records of a cell's items are stored: the recipe and the data that
// all items share, which ports has. refused is the time when the device was last refused for the cell's
// program, in Unix nanoseconds; 0 if never.
func (m *Maker) Group(id *Identity, ports map[string][]stages.Data, refused int64) stages.Digest {
	h := NewHasher("group")
	h.Digest(m.recipe(id, nil))
	for p := range id.Cell.Inputs {
		port := &id.Cell.Stage.Inputs[p]
		if len(ports[port.Name]) == 0 && port.Added {
			continue
		}
		h.Num(len(ports[port.Name]))
		for _, d := range ports[port.Name] {
			if d.Items != nil { // a value
				item, _ := d.Items.At(0)
				h.Digest(item.Digest)
			}
			h.coord(d.Coord)
			h.facts(d.Facts)
		}
	}
	if refused != 0 {
		h.Text("refused")
		h.Num(int(refused))
	}
	return h.Sum()
}

// An Input is the items that a cell reads on a port from one cell.
type Input interface {
	Of(call int) []int32                          // the positions of the items of a call
	Payload(at int) (d stages.Digest, known bool) // the digest of an item
	IDs() *IDs
}

// Item returns the key of a call of a cell: the digests of its items, by input and edge. ok is false while
// one of them is unknown, because it comes from the same job.
func Item[I Input](id *Identity, call int, inputs [][]I) (d stages.Digest, ok bool) {
	named := id.Cell.Stage.Named
	h := NewHasher("item")
	if id.Sources != nil {
		h.Digest(id.Sources.Digest(call))
		if named {
			h.Text(id.Sources.ID(call))
		}
	}
	for p := range inputs {
		for _, in := range inputs[p] { // their coordinates are in the group's key
			at := in.Of(call)
			h.Num(len(at))
			for _, k := range at {
				d, ok := in.Payload(int(k))
				if !ok {
					return d, false
				}
				h.Digest(d)
				if named {
					h.Text(in.IDs().ID(int(k)))
					h.Text(in.IDs().Origin(int(k)))
				}
			}
		}
	}
	return h.Sum(), true
}

// Program returns the key of the digest of a cell's program, whose value inputs have finished: it depends on
// the compiler, the stage and its parameters, which ports are wired, and the model.
func (m *Maker) Program(id *Identity, compiler string) stages.Digest {
	c := id.Cell
	h := NewHasher("program")
	h.Text(compiler)
	h.Text(c.Stage.Name)
	h.Num(c.Stage.Version)
	h.params(m.Params, c.Stage, c.Params)
	for p := range c.Inputs {
		edges := id.Live(p)
		if c.Stage.Inputs[p].Type.Items {
			h.Num(min(len(edges), 1))
			continue
		}
		h.Num(len(edges))
		for _, e := range edges {
			h.Digest(m.Results.Result(e.From, e.Port))
		}
	}
	return h.Sum()
}

// Trial names the program of a cell, whose value inputs have finished, regardless of its items: the recipe
// and the values.
func (m *Maker) Trial(id *Identity) stages.Digest {
	h := NewHasher("trial")
	h.Digest(m.recipe(id, nil))
	for p := range id.Cell.Inputs {
		if id.Cell.Stage.Inputs[p].Type.Items {
			continue
		}
		for _, e := range id.Live(p) {
			h.Digest(m.Results.Result(e.From, e.Port))
		}
	}
	return h.Sum()
}

// listedSources is how many sources are named one by one among a cell's ingredients, so that a change can
// be traced to a file.
const listedSources = 1000

func (l *Ingredients) addSources(s *Sources) {
	if s == nil {
		return
	}
	h := NewHasher("sources")
	for i, id := range s.ids {
		d := s.Digest(i)
		h.Digest(d)
		if s.Len() <= listedSources {
			l.add("source "+id, d.Short())
		}
	}
	l.add("sources", fmt.Sprintf("%d items, %s", s.Len(), h.Sum().Short()))
}
