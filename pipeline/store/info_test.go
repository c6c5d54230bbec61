package store

import (
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestCountItems: an item that several shares made counts once, and one under a group that nobody asks for
// until the store has it.
func TestCountItems(t *testing.T) {
	w := newWorld(8)
	dir := (&world{cells: w.cells[:2]}).filled(t)
	sharedBy(t, dir, &world{cells: w.cells[:5]}, w)
	groups, all, later := map[stages.Digest]bool{}, 0, 0
	for i := range w.cells {
		groups[w.cells[i].group] = true
		all += len(w.cells[i].ids)
		if i >= 2 {
			later += len(w.cells[i].ids)
		}
	}
	count := func(experiment string, ask bool) (known, others int) {
		t.Helper()
		s := open(t, dir, Options{ReadOnly: true})
		defer s.Close()
		counts, others := s.CountItems(experiment, func(g stages.Digest) bool { return ask && groups[g] })
		for _, n := range counts {
			known += n
		}
		return known, others
	}
	if known, others := count("test", true); known != all || others != 0 {
		t.Errorf("of all groups: %d and %d, want %d and 0", known, others, all)
	}
	if known, others := count("test", false); known != 0 || others != later {
		t.Errorf("of none: %d and %d, want 0 and %d", known, others, later)
	}
	if _, others := count("another", false); others != 0 {
		t.Errorf("of another experiment: %d", others)
	}
	mergeShares(t, dir)
	if _, others := count("test", false); others != 0 {
		t.Errorf("after a merge: %d", others)
	}
}
