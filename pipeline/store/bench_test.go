package store

import (
	"encoding/binary"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
)

func number(n int) stages.Digest {
	return stages.Sum(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

// Payloads of tiny cells: a table within its record, and one in an object.
const (
	tinyTable  = 100
	tinyObject = 5000
)

// recordCell stores cell n with one payload.
func recordCell(t testing.TB, s *Store, n, size int) {
	t.Helper()
	payload := make([]byte, size)
	binary.LittleEndian.PutUint64(payload, uint64(n))
	refs, err := s.Put([][]byte{payload})
	if err != nil {
		t.Fatal(err)
	}
	l := newListing(nil, 0)
	l.Append(Entry{Ref: refs[0]})
	a := Action{
		Key: number(n), Experiment: "bench", Cell: fmt.Sprintf("cell[n=%d]", n), Definition: number(-n),
		MadeBy: "cpu linux/amd64 avx512 ort1.24.1",
		Ingredients: []Ingredient{{"implementation", "score/auc"}, {"version", "1"},
			{"params", `{"steps":32}`}, {"curves", number(n).String()}},
		Outputs: []Output{{Port: "scores"}},
	}
	if err := s.Record(a, []*Listing{l}); err != nil {
		t.Fatal(err)
	}
}

const manyCells = 10_000

// bothSizes runs a benchmark for tables and for objects.
func bothSizes(b *testing.B, fn func(b *testing.B, size int)) {
	b.Run("table", func(b *testing.B) { fn(b, tinyTable) })
	b.Run("object", func(b *testing.B) { fn(b, tinyObject) })
}

func fill(b *testing.B, dir string, size int) *Store {
	s, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for n := range manyCells {
		recordCell(b, s, n, size)
	}
	return s
}

// reportCPU adds the processor time per operation, which other processes change less.
func reportCPU(b *testing.B, used time.Duration) {
	b.ReportMetric(float64(used.Microseconds())/1e3/float64(b.N), "cpu-ms/op")
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkNoop opens a store of 10,000 cells, looks each up and checks that its object is there. Reach:
// 25 ms and 15 MB.
func BenchmarkNoop(b *testing.B) {
	bothSizes(b, func(b *testing.B, size int) {
		dir := b.TempDir()
		if err := fill(b, dir, size).Close(); err != nil {
			b.Fatal(err)
		}
		keys := make([]stages.Digest, manyCells)
		for n := range keys {
			keys[n] = number(n)
		}
		b.ReportAllocs()
		var used time.Duration
		for b.Loop() {
			began := cpuTime()
			s, err := Open(dir, Options{ReadOnly: true})
			if err != nil {
				b.Fatal(err)
			}
			var objects []ObjectRef
			for _, k := range keys {
				h, ok := s.Lookup(k, "cpu linux/amd64 avx512 ort1.24.1")
				if !ok {
					b.Fatal("a cell is missing")
				}
				objects = slices.AppendSeq(objects, h.Objects())
			}
			for _, p := range objects {
				if m := s.Check(p); m != nil {
					b.Fatal(m)
				}
			}
			used += cpuTime() - began
		}
		reportCPU(b, used)
	})
}

// BenchmarkRecord stores 10,000 tiny cells. Reach: 0.7 s.
func BenchmarkRecord(b *testing.B) {
	bothSizes(b, func(b *testing.B, size int) {
		var used time.Duration
		for b.Loop() {
			dir := b.TempDir()
			began := cpuTime()
			fill(b, dir, size)
			used += cpuTime() - began
		}
		reportCPU(b, used)
	})
}

// BenchmarkClose measures the sync at the end of a run of 10,000 tiny cells.
func BenchmarkClose(b *testing.B) {
	bothSizes(b, func(b *testing.B, size int) {
		for b.Loop() {
			b.StopTimer()
			s := fill(b, b.TempDir(), size)
			b.StartTimer()
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
