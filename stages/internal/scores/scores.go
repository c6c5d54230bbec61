// Package scores reads the scores of whole data sets, of which there may be many: a number takes eight bytes,
// and cells with the same images share their names. An image is an item's id with its origin: counted names,
// such as those of mosaics, may stand for different images in different cells.
//
// A contest compares cells (cells.go, contest.go) by their means (means.go) and by tests (compare.go,
// power.go); replicates.go averages cells that differ in seeds, twins.go finds equal ones, and exact.go adds
// exact scores of some images to cheap ones of all, as the parameters of exactly.go ask, and redraw.go has
// how far means may be off then.
package scores

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
)

// A List is the scores of one cell, in the order of its items.
type List struct {
	Values []float64 // NaN where undefined
	names  *names
}

// names are the ids of items, one after another, each followed by its origin if that is another one.
type names struct {
	text  []byte
	ends  []uint32
	index map[string]int32 // once needed
}

func (n *names) at(i int) []byte {
	first := uint32(0)
	if i > 0 {
		first = n.ends[i-1]
	}
	return n.text[first:n.ends[i]]
}

// Read reads the scores of some cells. A list may share its names with the one before.
func Read(ctx context.Context, cells []stages.Data) ([]*List, error) {
	lists := make([]*List, len(cells))
	var last *List
	for i, d := range cells {
		var err error
		if last, err = read(ctx, d, last); err != nil {
			return nil, err
		}
		lists[i] = last
	}
	return lists, nil
}

// read reads the scores on a port. like is a list that may have the same items, or nil.
func read(ctx context.Context, d stages.Data, like *List) (*List, error) {
	l := &List{Values: make([]float64, d.Items.Len())}
	if like != nil && len(like.Values) == len(l.Values) {
		l.names = like.names
	}
	i := 0
	for m, err := range d.All(ctx) {
		if err != nil {
			return nil, err
		}
		if l.Values[i], err = stages.ScalarOf(m.Data); err != nil {
			return nil, fmt.Errorf("score of %q: %w", m.ID, err)
		}
		name := m.ID
		if m.Origin != "" && m.Origin != m.ID {
			name += originMark + m.Origin
		}
		l.name(i, name)
		i++
	}
	if l.names == nil {
		l.names = &names{}
	}
	return l, nil
}

// originMark stands before an origin: a byte that no name of a file has.
const originMark = "\x00"

// Mixed reports whether an id stands for different images in two lists.
func Mixed(a, b *List) bool {
	if a.names == b.names {
		return false
	}
	of := make(map[string]string, len(a.Values))
	for i := range a.Values {
		id, origin, _ := bytes.Cut(a.names.at(i), []byte(originMark))
		of[string(id)] = string(origin)
	}
	for i := range b.Values {
		id, origin, _ := bytes.Cut(b.names.at(i), []byte(originMark))
		if other, ok := of[string(id)]; ok && other != string(origin) {
			return true
		}
	}
	return false
}

// name gives item i, the one behind those that have names, its own.
func (l *List) name(i int, id string) {
	if like := l.names; like != nil && len(like.ends) == len(l.Values) {
		if string(like.at(i)) == id {
			return
		}
		l.names = nil // the first i were the same
		for k := range i {
			l.name(k, string(like.at(k)))
		}
	}
	if l.names == nil {
		l.names = &names{ends: make([]uint32, 0, len(l.Values))}
	}
	l.names.text = append(l.names.text, id...)
	l.names.ends = append(l.names.ends, uint32(len(l.names.text)))
}

// Of returns l's score of the image that is m's item i, and whether there is one.
func (l *List) Of(m *List, i int) (float64, bool) {
	k := l.position(m, i)
	if k < 0 {
		return math.NaN(), false
	}
	return l.Values[k], true
}

// position returns l's item that is m's item i, or -1.
func (l *List) position(m *List, i int) int {
	if l.names == m.names {
		return i
	}
	if l.names.index == nil {
		l.names.index = make(map[string]int32, len(l.Values))
		for k := range l.Values {
			l.names.index[string(l.names.at(k))] = int32(k)
		}
	}
	k, ok := l.names.index[string(m.names.at(i))]
	if !ok {
		return -1
	}
	return int(k)
}

// Shared returns, list by list, the scores of the images for which every list has a defined one, in the order
// of the first list.
func Shared(lists []*List) [][]float64 {
	out := make([][]float64, len(lists))
	first := lists[0]
	n := 0
	each := func(f func(i int)) {
		for i := range first.Values {
			all := true
			for _, l := range lists {
				x, ok := l.Of(first, i)
				all = all && ok && !math.IsNaN(x)
			}
			if all {
				f(i)
			}
		}
	}
	each(func(int) { n++ })
	for k := range out {
		out[k] = make([]float64, 0, n)
	}
	each(func(i int) {
		for k, l := range lists {
			x, _ := l.Of(first, i)
			out[k] = append(out[k], x)
		}
	})
	return out
}
