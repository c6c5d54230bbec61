package key

import (
	"fmt"
	"runtime"
	"testing"
)

// TestIDsTakeFewBytes: a list of 100,000 ids of two dozen letters takes at most 100 bytes an item, positions
// included.
func TestIDsTakeFewBytes(t *testing.T) {
	const items = 100_000
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	l := &IDs{}
	for i := range items {
		id := fmt.Sprintf("ILSVRC2012_val_%08d", i)
		l.Add(id, id)
	}
	if at := l.Find("ILSVRC2012_val_00004711"); at != 4711 {
		t.Errorf("found at %d", at)
	}
	perItem := float64(live()-before) / items
	if t.Logf("%.1f bytes an item", perItem); perItem > 100 {
		t.Errorf("%.1f bytes an item", perItem)
	}
	runtime.KeepAlive(l)
}
