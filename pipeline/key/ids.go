package key

import (
	"fmt"
	"slices"
	"sync"
)

// IDs name the items of a port. A list is shared by all the cells whose items correspond to one another one
// by one. It stays in memory, so an id takes at most 100 bytes.
type IDs struct {
	ids     []string
	origins []string // nil while every item is its own origin

	once      sync.Once
	positions map[string]int32 // by id
}

// Add adds the item called id.
func (l *IDs) Add(id, origin string) {
	if l.origins == nil && origin != id {
		l.origins = append([]string{}, l.ids...)
	}
	if l.ids = append(l.ids, id); l.origins != nil {
		l.origins = append(l.origins, origin)
	}
}

// Len returns the number of items.
func (l *IDs) Len() int { return len(l.ids) }

// ID returns the id of item i.
func (l *IDs) ID(i int) string { return l.ids[i] }

// All returns the ids of all items, which must not be changed.
func (l *IDs) All() []string { return l.ids }

// Origin returns the id of the item from which item i was derived, or its own.
func (l *IDs) Origin(i int) string {
	if l.origins != nil {
		return l.origins[i]
	}
	return l.ids[i]
}

// Equal reports whether both lists have the same ids, all of which are their own origins.
func (l *IDs) Equal(m *IDs) bool {
	return l.origins == nil && m.origins == nil && slices.Equal(l.ids, m.ids)
}

// Find returns the position of the item called id, or -1.
func (l *IDs) Find(id string) int {
	l.once.Do(func() {
		l.positions = make(map[string]int32, len(l.ids))
		for i, id := range l.ids {
			l.positions[id] = int32(i)
		}
	})
	if i, ok := l.positions[id]; ok {
		return int(i)
	}
	return -1
}

// common returns the items that lists have in common, in the order of the first. If an item is missing from
// a list, and drop doesn't leave it out, the error names that list by names.
func common(lists []*IDs, names []string, drop bool) (*IDs, error) {
	both := &IDs{}
	for i, l := range lists {
		for k, id := range l.ids {
			lacking := slices.IndexFunc(lists, func(m *IDs) bool { return m.Find(id) < 0 })
			switch {
			case lacking < 0 && i == 0:
				both.Add(id, l.Origin(k))
			case lacking >= 0 && !drop:
				return nil, lacksItem(names[lacking], id)
			}
		}
	}
	return both, nil
}

func lacksItem(input, id string) error {
	return fmt.Errorf("input %q has nothing for the item %q", input, id)
}
