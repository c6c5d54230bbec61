package results

import (
	"encoding/json"
	"fmt"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A CellMaps is the maps of a cell, with their images and classes, in the store. A page shows them; a
// review folder has no room for them. Unknown payloads are nil.
type CellMaps struct {
	Cell  string
	Coord []stages.Coord
	Maps  *Payloads

	Images      *Payloads
	Targets     *Payloads // the explained classes
	Probability *Payloads // of the explained classes
	Labels      string    // names of the classes, a line each
	Truth       *Payloads // the images' own classes, nil without labels

	Prediction *Prediction // nil unless the experiment has a stage that predicts
	Small      *Small      // nil without thumbnails
	Wire       string      // the experiment's name for the maps, if it keeps neither them nor thumbnails

	Words  *Payloads // of maps of texts, nil for images
	Curves []Curve   // in the order of the maps
}

// A Small is the thumbnails of a cell's maps: levels of grey, and the values of the lowest and the highest.
type Small struct{ Maps, Ends *Payloads }

// Payloads are the items of one port of a cell.
type Payloads struct {
	At     string   // names the port
	IDs    []string // of the items
	Digest func(i int) stages.Digest
	Load   func(i int) ([]byte, error) // the error is a [*store.Miss] if the store lost the payload
}

// FindMaps finds the maps that a run published as a version of a review folder, if the store still has them.
// known is false if no run with this store published that version.
func FindMaps(s *store.Store, v *publish.Version) (list []*CellMaps, known bool) {
	b, known := s.Memo(mapIndexKey(v.Definitions()))
	var x mapIndex
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
		p := &CellMaps{Cell: c.Cell, Coord: c.Coord, Maps: of(c.Maps), Images: of(c.Images),
			Targets: of(c.Targets), Probability: of(c.Probability), Labels: c.Labels, Wire: c.Wire}
		if small := c.Small; small != nil && of(small.Maps) != nil && of(small.Ends) != nil {
			p.Small = &Small{of(small.Maps), of(small.Ends)}
		}
		if q := c.Prediction; q != nil && of(q.Targets) != nil {
			p.Prediction = &Prediction{of(q.Targets), of(q.Probability)}
		}
		if c.Truth != nil {
			p.Truth = of(*c.Truth)
		}
		if c.Words != nil {
			p.Words = of(*c.Words)
		}
		p.setCurves(c, of)
		list = append(list, p)
	}
	return list, true
}

// A Prediction is the classes that the explained net predicts for the images. Maps may explain other classes.
type Prediction struct{ Targets, Probability *Payloads }
