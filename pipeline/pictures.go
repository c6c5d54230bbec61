package pipeline

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Pictured is a cell with maps, as the store has it: where the maps, their images and the explained classes
// are. It is what a page shows that a review folder has no room for.
type Pictured struct {
	Cell  string
	Coord []stages.Coord
	Maps  *Payloads

	Images      *Payloads // nil where they aren't known, as the next
	Targets     *Payloads
	Probability *Payloads
	Labels      string // names of the classes, a line each

	Prediction *Prediction // nil where no stage asked for it
	Small      *Small      // nil without thumbnails
	Wire       string      // of the maps, if they aren't kept and have no thumbnails
}

// A Small is what a stage of thumbnails made of a cell's maps.
type Small struct{ Maps, Ends *Payloads }

// Payloads are the items of one port of a cell.
type Payloads struct {
	At     string   // tells ports apart
	IDs    []string // of the items
	Digest func(i int) stages.Digest
	Load   func(i int) ([]byte, error) // the error is a [*store.Miss] where the store has it no more
}

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
func (r *Result) rememberPictures(dir string) error {
	x := pictureIndexer{r: r, lists: map[*idList]int{}, ports: map[portOf]int{}, cells: map[*plan.Cell]int{},
		predict: predictors(r.Plan)}
	for _, c := range r.Plan.Cells {
		if err := x.add(c); lost(err) == nil && err != nil { // what is lost isn't shown
			return err
		}
	}
	if len(x.Cells) == 0 {
		return nil
	}
	claims, err := publish.ReadClaims(dir)
	if err != nil {
		return err
	}
	b, err := json.Marshal(x.pictureIndex)
	if err != nil {
		return err
	}
	return r.run.store.SetMemo(picturesKey(claims), b)
}

func picturesKey(claims stages.Digest) stages.Digest {
	h := newHasher("pictures")
	h.digest(claims)
	return h.sum()
}

type pictureIndexer struct {
	pictureIndex
	r       *Result
	lists   map[*idList]int
	ports   map[portOf]int
	cells   map[*plan.Cell]int
	predict map[question]*plan.Cell
}

// add adds a cell if it has maps that people see, or what is small of those of another.
func (x *pictureIndexer) add(c *plan.Cell) error {
	if c.Step.Implied || !x.r.run.nodes[c.Index].hasResults() {
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
			l, err := x.r.run.listing(x.r.run.nodes[e.From.Index], k)
			if err != nil {
				return err
			}
			p.Labels = l.Facts["labels"]
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
	n := x.r.run.nodes[c.Index]
	if i, ok := x.ports[portOf{n, port}]; ok {
		return i, nil
	}
	if !n.hasResults() {
		return -1, nil
	}
	ids, err := x.r.run.idsOf(n, port)
	if err != nil {
		return -1, err
	}
	list, ok := x.lists[ids]
	if !ok {
		list, x.lists[ids], x.Lists = len(x.Lists), len(x.Lists), append(x.Lists, ids.ids)
	}
	at := len(x.Ports)
	x.ports[portOf{n, port}] = at
	x.Ports = append(x.Ports, picturePort{Key: n.key, MadeBy: n.stored().MadeBy(), Port: port, List: list})
	return at, nil
}

// Pictures finds the maps behind a version of a review folder, as far as the store has them: those that a run
// published as that version. known is false where no run on this store did.
func Pictures(s *store.Store, v *publish.Version) (list []*Pictured, known bool) {
	b, known := s.Memo(picturesKey(v.Claims()))
	var x pictureIndex
	if !known || json.Unmarshal(b, &x) != nil {
		return nil, false
	}
	ports := make([]*Payloads, len(x.Ports))
	for i, p := range x.Ports {
		hit, ok := s.Lookup(p.Key, p.MadeBy)
		if !ok || p.List < 0 || p.List >= len(x.Lists) {
			continue
		}
		l, err := s.Listing(hit, p.Port)
		if err != nil || l.Len() != len(x.Lists[p.List]) {
			continue
		}
		at := newHasher("port")
		at.digest(p.Key)
		at.num(p.Port)
		ports[i] = &Payloads{At: at.sum().Short(), IDs: x.Lists[p.List], Digest: l.PayloadDigest,
			Load: func(i int) ([]byte, error) { return s.Load(l.At(i).Ref) }}
	}
	of := func(i int) *Payloads {
		if i < 0 || i >= len(ports) {
			return nil
		}
		return ports[i]
	}
	for _, c := range x.Cells {
		p := &Pictured{Cell: c.Cell, Coord: c.Coord, Maps: of(c.Maps), Images: of(c.Images),
			Targets: of(c.Targets), Probability: of(c.Probability), Labels: c.Labels, Wire: c.Wire}
		if small := c.Small; small != nil && of(small.Maps) != nil && of(small.Ends) != nil {
			p.Small = &Small{of(small.Maps), of(small.Ends)}
		}
		if q := c.Prediction; q != nil && of(q.Targets) != nil {
			p.Prediction = &Prediction{of(q.Targets), of(q.Probability)}
		}
		list = append(list, p)
	}
	return list, true
}

// A Prediction is the classes that the explained net predicts for the images, which may be others than the
// explained ones.
type Prediction struct{ Targets, Probability *Payloads }

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
