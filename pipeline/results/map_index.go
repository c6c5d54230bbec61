package results

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A mapIndex says which results in the store are the maps, images and classes of a published folder. It is
// stored by the definitions in the folder: a page is made without the experiment, and the store's records
// of a cell don't name the items.
type mapIndex struct {
	Lists [][]string // of ids
	Ports []indexedPort
	Cells []indexedCell
}

type indexedPort struct {
	Key    stages.Digest
	MadeBy string
	Port   int
	List   int // the position of its ids in Lists
}

// An indexedCell has positions in Ports; −1 for none.
type indexedCell struct {
	Cell                               string
	Coord                              []stages.Coord
	Maps, Images, Targets, Probability int
	Labels                             string
	Truth                              *int               `json:",omitempty"` // the labels of the images
	Prediction                         *indexedPrediction `json:",omitempty"`
	Small                              *indexedSmall      `json:",omitempty"`
	Wire                               string             `json:",omitempty"`
	Words                              *int               `json:",omitempty"` // of maps of texts
	Curves                             []indexedCurve     `json:",omitempty"`
}

type indexedSmall struct{ Maps, Ends int }

// rememberMaps stores the index of a published folder.
func rememberMaps(r *pipeline.Result, dir string) error {
	x := mapIndexer{r: r, lists: map[*string]int{}, ports: map[plan.Output]int{}, cells: map[*plan.Cell]int{},
		predict: predictors(r.Plan)}
	for _, c := range r.Plan.Cells {
		if err := x.add(c); err != nil && !errors.As(err, new(*store.Miss)) { // a lost map isn't shown
			return err
		}
	}
	if len(x.Cells) == 0 {
		return nil
	}
	definitions, err := publish.ReadDefinitions(dir)
	if err != nil {
		return err
	}
	b, err := json.Marshal(x.mapIndex)
	if err != nil {
		return err
	}
	return r.Store().SetMemo(mapIndexKey(definitions), b)
}

func mapIndexKey(definitions stages.Digest) stages.Digest {
	return key.Of("pictures", []stages.Digest{definitions}, nil) // as builds before called them
}

type mapIndexer struct {
	mapIndex
	r       *pipeline.Result
	lists   map[*string]int // positions, by the first id: cells with the same items have one list in memory
	ports   map[plan.Output]int
	cells   map[*plan.Cell]int
	predict map[netOnImages]*plan.Cell
}

// add adds a cell that has maps, or the thumbnails of another cell's maps.
func (x *mapIndexer) add(c *plan.Cell) error {
	if c.Step.Implied || !x.r.State(c).OK() {
		return nil
	}
	if makesThumbnails(c.Step) {
		return x.addSmall(c)
	}
	if port := slices.IndexFunc(c.Stage.Outputs, isType(stages.Curves)); port >= 0 {
		if err := x.addCurve(c, port); err != nil {
			return err
		}
	}
	port := slices.IndexFunc(c.Stage.Outputs, isType(stages.Maps))
	if port < 0 {
		return nil
	}
	p := indexedCell{Cell: c.String(), Coord: c.Coord, Images: -1, Targets: -1, Probability: -1}
	var err error
	if p.Maps, err = x.port(c, port); err != nil {
		return err
	}
	if e, ok := upstream(c, stages.Images); ok {
		if e.From.Stage.Outputs[e.Port].Type == stages.Tokens {
			p.Words, err = x.words(e)
		} else {
			p.Images, err = x.port(e.From, e.Port)
		}
		if err != nil {
			return err
		}
		if k := slices.IndexFunc(e.From.Stage.Outputs, isType(stages.Labels)); k >= 0 {
			facts, err := x.r.Facts(e.From, k)
			if err != nil {
				return err
			}
			p.Labels = facts["labels"]
			truth, err := x.port(e.From, k)
			if err != nil {
				return err
			}
			p.Truth = &truth
		}
	}
	if e, ok := upstream(c, stages.Targets); ok {
		if p.Targets, err = x.port(e.From, e.Port); err != nil {
			return err
		}
		if k := probabilityPort(e.From); k >= 0 {
			if p.Probability, err = x.port(e.From, k); err != nil {
				return err
			}
		}
	}
	if p.Prediction, err = x.prediction(c); err != nil {
		return err
	}
	if !c.Step.Keep {
		p.Wire = wire(c, port)
	}
	x.cells[c] = len(x.Cells)
	x.Cells = append(x.Cells, p)
	return nil
}

// addSmall adds thumbnails to the cell that has the maps.
func (x *mapIndexer) addSmall(c *plan.Cell) error {
	in := slices.IndexFunc(c.Stage.Inputs, isType(stages.Maps))
	if in < 0 || len(c.Inputs[in].Edges) == 0 {
		return nil
	}
	at, known := x.cells[c.Inputs[in].Edges[0].From]
	if !known {
		return nil
	}
	small := indexedSmall{-1, -1}
	for i, port := range c.Stage.Outputs {
		to := map[stages.Type]*int{stages.Thumbnails: &small.Maps, stages.Ends: &small.Ends}[port.Type]
		if to == nil {
			continue
		}
		var err error
		if *to, err = x.port(c, i); err != nil {
			return err
		}
	}
	x.Cells[at].Small, x.Cells[at].Wire = &small, ""
	return nil
}

// makesThumbnails reports whether a step makes thumbnails. Pages show them; no review folder has them.
func makesThumbnails(s *plan.Step) bool {
	return len(s.Cells) > 0 && slices.ContainsFunc(s.Cells[0].Stage.Outputs, isType(stages.Thumbnails))
}

func isType(t stages.Type) func(stages.Port) bool {
	return func(p stages.Port) bool { return p.Type == t }
}

// wire names an output port as an experiment does.
func wire(c *plan.Cell, port int) string {
	if port == 0 {
		return c.Step.Name
	}
	return c.Step.Name + "." + c.Stage.Outputs[port].Name
}

// upstream returns the edge by which items of a type reach a cell or, if none does, the cell that its maps
// come from.
func upstream(c *plan.Cell, t stages.Type) (plan.Edge, bool) {
	for _, of := range []stages.Type{t, stages.Maps} {
		for i, port := range c.Stage.Inputs {
			if port.Type != of || len(c.Inputs[i].Edges) == 0 {
				continue
			}
			e := c.Inputs[i].Edges[0]
			if of != t {
				return upstream(e.From, t)
			}
			return e, e.Port >= 0
		}
	}
	return plan.Edge{}, false
}

// port returns the position of a cell's output port in Ports, −1 for a cell without results.
func (x *mapIndexer) port(c *plan.Cell, port int) (int, error) {
	if i, ok := x.ports[plan.Output{From: c, Port: port}]; ok {
		return i, nil
	}
	if !x.r.State(c).OK() {
		return -1, nil
	}
	ids, err := x.r.IDs(c, port)
	if err != nil {
		return -1, err
	}
	at := len(x.Ports)
	x.ports[plan.Output{From: c, Port: port}] = at
	x.Ports = append(x.Ports, indexedPort{Key: x.r.Key(c), MadeBy: x.r.Stored(c).MadeBy(), Port: port,
		List: x.list(ids)})
	return at, nil
}

// list returns the position of a list of ids in Lists.
func (x *mapIndexer) list(ids []string) int {
	var first *string
	if len(ids) > 0 {
		first = &ids[0]
	}
	at, ok := x.lists[first]
	if !ok {
		at, x.lists[first], x.Lists = len(x.Lists), len(x.Lists), append(x.Lists, ids)
	}
	return at
}

type indexedPrediction struct{ Targets, Probability int }

// A netOnImages is a net and the images that it classifies.
type netOnImages struct{ model, images plan.Output }

// netOf returns the net and the images that a cell, or the cell that its maps come from, explains.
func netOf(c *plan.Cell) (q netOnImages, ok bool) {
	model, hasModel := upstream(c, stages.Model)
	images, hasImages := upstream(c, stages.Images)
	q.model = plan.Output{From: model.From, Port: model.Port}
	q.images = plan.Output{From: images.From, Port: images.Port}
	return q, hasModel && hasImages
}

// predictors returns the cells that find the classes which nets predict: cells of a stage that chooses
// classes, with its default parameters.
func predictors(p *plan.Plan) map[netOnImages]*plan.Cell {
	index := map[netOnImages]*plan.Cell{}
	for _, c := range p.Cells {
		chooses := slices.ContainsFunc(c.Stage.Outputs, isType(stages.Targets)) && probabilityPort(c) >= 0
		if chooses && reflect.DeepEqual(c.Params, c.Stage.NewParams()) {
			if q, ok := netOf(c); ok {
				index[q] = c
			}
		}
	}
	return index
}

// probabilityPort returns the output port that has the probabilities of the classes a cell chooses, or −1.
func probabilityPort(c *plan.Cell) int {
	return slices.IndexFunc(c.Stage.Outputs, func(p stages.Port) bool { return p.Name == "probability" })
}

// prediction returns the prediction of the net that a cell explains, nil if no cell of the experiment has it.
func (x *mapIndexer) prediction(c *plan.Cell) (*indexedPrediction, error) {
	q, ok := netOf(c)
	from := x.predict[q]
	if !ok || from == nil {
		return nil, nil
	}
	targets, err := x.port(from, slices.IndexFunc(from.Stage.Outputs, isType(stages.Targets)))
	if err != nil {
		return nil, err
	}
	probability, err := x.port(from, probabilityPort(from))
	return &indexedPrediction{targets, probability}, err
}
