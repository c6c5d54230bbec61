package results

import (
	"encoding/json"
	"fmt"

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

// Pictures finds the maps behind a version of a review folder, as far as the store has them: those that a run
// published as that version. known is false where no run on this store did.
func Pictures(s *store.Store, v *publish.Version) (list []*Pictured, known bool) {
	b, known := s.Memo(picturesKey(v.Definitions()))
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
		ports[i] = &Payloads{At: fmt.Sprintf("%s.%d", p.Key.Short(), p.Port), IDs: x.Lists[p.List],
			Digest: l.PayloadDigest,
			Load:   func(i int) ([]byte, error) { return s.Load(l.At(i).Ref) }}
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
