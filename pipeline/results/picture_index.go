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

// A pictureIndex is remembered in the store for a published folder, by the folder's claims: actions have no
// ids of items, and a page is made without the experiment.
type pictureIndex struct {
	Lists [][]string // of ids
	Ports []picturePort
	Cells []pictureCell
}

type picturePort struct {
	Key    stages.Digest
	MadeBy string
	Port   int
	List   int // of Lists
}

// A pictureCell has positions in Ports; −1 for none.
type pictureCell struct {
	Cell                               string
	Coord                              []stages.Coord
	Maps, Images, Targets, Probability int
	Labels                             string
	Prediction                         *picturePrediction `json:",omitempty"`
	Small                              *pictureSmall      `json:",omitempty"`
	Wire                               string             `json:",omitempty"`
}

type pictureSmall struct{ Maps, Ends int }

// rememberPictures notes in the store where the pictures of a published folder are.
func rememberPictures(r *pipeline.Result, dir string) error {
	x := pictureIndexer{r: r, lists: map[*string]int{}, ports: map[source]int{}, cells: map[*plan.Cell]int{},
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
	b, err := json.Marshal(x.pictureIndex)
	if err != nil {
		return err
	}
	return r.Store().SetMemo(picturesKey(definitions), b)
}

func picturesKey(claims stages.Digest) stages.Digest {
	return key.Of("pictures", []stages.Digest{claims}, nil)
}

type pictureIndexer struct {
	pictureIndex
	r       *pipeline.Result
	lists   map[*string]int // by their first id: cells with the same items have the same list
	ports   map[source]int
	cells   map[*plan.Cell]int
	predict map[question]*plan.Cell
}

// add adds a cell if it has maps that people see, or what is small of those of another.
func (x *pictureIndexer) add(c *plan.Cell) error {
	if c.Step.Implied || !x.r.State(c).OK() {
		return nil
	}
	if makesThumbnails(c.Step) {
		return x.addSmall(c)
	}
	port := slices.IndexFunc(c.Stage.Outputs, isType(stages.Maps))
	if port < 0 {
		return nil
	}
	p := pictureCell{Cell: c.String(), Coord: c.Coord, Images: -1, Targets: -1, Probability: -1}
	var err error
	if p.Maps, err = x.port(c, port); err != nil {
		return err
	}
	if e, ok := upstream(c, stages.Images); ok {
		if p.Images, err = x.port(e.From, e.Port); err != nil {
			return err
		}
		if k := slices.IndexFunc(e.From.Stage.Outputs, isType(stages.Labels)); k >= 0 {
			facts, err := x.r.Facts(e.From, k)
			if err != nil {
				return err
			}
			p.Labels = facts["labels"]
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

// addSmall adds the thumbnails of a cell's maps to it.
func (x *pictureIndexer) addSmall(c *plan.Cell) error {
	in := slices.IndexFunc(c.Stage.Inputs, isType(stages.Maps))
	if in < 0 || len(c.Inputs[in].Edges) == 0 {
		return nil
	}
	at, known := x.cells[c.Inputs[in].Edges[0].From]
	if !known {
		return nil
	}
	small := pictureSmall{-1, -1}
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

// makesThumbnails reports whether a step makes thumbnails, which are for pages and for no review folder.
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

// upstream returns the edge by which the items of a type reach a cell, or the cells that its maps come from.
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

// port returns the position of a cell's output port among the ports.
func (x *pictureIndexer) port(c *plan.Cell, port int) (int, error) {
	if i, ok := x.ports[source{c, port}]; ok {
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
	x.ports[source{c, port}] = at
	x.Ports = append(x.Ports, picturePort{Key: x.r.Key(c), MadeBy: x.r.Stored(c).MadeBy(), Port: port,
		List: x.list(ids)})
	return at, nil
}

// list returns the position of a list of ids among the lists.
func (x *pictureIndexer) list(ids []string) int {
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

type picturePrediction struct{ Targets, Probability int }

// A question is put to a net: what it makes of some images.
type question struct{ model, images source }

type source struct {
	cell *plan.Cell
	port int
}

// asked returns the question that a cell, or those that its maps come from, puts to a net.
func asked(c *plan.Cell) (q question, ok bool) {
	model, hasModel := upstream(c, stages.Model)
	images, hasImages := upstream(c, stages.Images)
	return question{source{model.From, model.Port}, source{images.From, images.Port}}, hasModel && hasImages
}

// predictors returns the cells that choose the classes which nets predict: a stage that chooses classes does
// so by default.
func predictors(p *plan.Plan) map[question]*plan.Cell {
	index := map[question]*plan.Cell{}
	for _, c := range p.Cells {
		chooses := slices.ContainsFunc(c.Stage.Outputs, isType(stages.Targets)) && probabilityPort(c) >= 0
		if chooses && reflect.DeepEqual(c.Params, c.Stage.NewParams()) {
			if q, ok := asked(c); ok {
				index[q] = c
			}
		}
	}
	return index
}

// probabilityPort returns the output port with the probabilities of the classes that a cell chooses, or −1.
func probabilityPort(c *plan.Cell) int {
	return slices.IndexFunc(c.Stage.Outputs, func(p stages.Port) bool { return p.Name == "probability" })
}

// prediction returns what the net that a cell explains predicts, nil if no cell asked.
func (x *pictureIndexer) prediction(c *plan.Cell) (*picturePrediction, error) {
	q, ok := asked(c)
	from := x.predict[q]
	if !ok || from == nil {
		return nil, nil
	}
	targets, err := x.port(from, slices.IndexFunc(from.Stage.Outputs, isType(stages.Targets)))
	if err != nil {
		return nil, err
	}
	probability, err := x.port(from, probabilityPort(from))
	return &picturePrediction{targets, probability}, err
}
