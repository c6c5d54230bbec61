package store

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"github.com/runexp/runexp/stages"
)

func number(n int) stages.Digest {
	return stages.Sum(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

// record stores cell n with one small pack.
func recordCell(t testing.TB, s *Store, n int) {
	t.Helper()
	payload := make([]byte, 400)
	binary.LittleEndian.PutUint64(payload, uint64(n))
	refs, err := s.Put([][]byte{payload})
	if err != nil {
		t.Fatal(err)
	}
	l := &Listing{}
	l.Append(refs[0])
	a := Action{
		Key: number(n), Experiment: "bench", Cell: fmt.Sprintf("cell[n=%d]", n), Definition: number(-n), MadeBy: "cpu linux/amd64 avx512 ort1.24.1",
		Ingredients: []Ingredient{{"implementation", "score/auc"}, {"version", "1"}, {"params", `{"steps":32}`}, {"curves", number(n).String()}},
		Outputs:     []Output{{Port: "scores"}},
	}
	if err := s.Record(a, []*Listing{l}); err != nil {
		t.Fatal(err)
	}
}

const manyCells = 10_000

// BenchmarkNoop opens a store of 10,000 cells, looks each up and checks that its
// pack is there. Reach: 25 ms and 15 MB.
func BenchmarkNoop(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for n := range manyCells {
		recordCell(b, s, n)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	keys := make([]stages.Digest, manyCells)
	for n := range keys {
		keys[n] = number(n)
	}
	b.ReportAllocs()
	var before, after runtime.MemStats
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		s, err := Open(dir, Options{ReadOnly: true})
		if err != nil {
			b.Fatal(err)
		}
		for _, k := range keys {
			h, ok := s.Lookup(k, "cpu linux/amd64 avx512 ort1.24.1")
			if !ok {
				b.Fatal("a cell is missing")
			}
			for p := range h.Packs() {
				if m := s.Check(p); m != nil {
					b.Fatal(m)
				}
			}
		}
		b.StopTimer()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(s)
		b.StartTimer()
	}
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1e6, "MB")
}

// BenchmarkRecord stores 10,000 tiny cells with a pack each. Reach: 0.7 s.
func BenchmarkRecord(b *testing.B) {
	for b.Loop() {
		s, err := Open(b.TempDir(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		for n := range manyCells {
			recordCell(b, s, n)
		}
	}
}

// BenchmarkClose measures the sync at the end of a run of 10,000 tiny cells.
func BenchmarkClose(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s, err := Open(b.TempDir(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		for n := range manyCells {
			recordCell(b, s, n)
		}
		b.StartTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
