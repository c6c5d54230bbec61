package publish

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/typeset"
)

func TestWithin(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		a, b, tolerance float64
		ok              bool
	}{
		{1, 1, 0, true}, {1, 1 + 1e-12, 0, true}, {1, 1 + 1e-8, 0, false}, {0.1, 0.2, 0.1, true},
		{0.1, 0.2, 0.0999, false},
		{nan, nan, 0, true}, {nan, 0, 9, false}, {0, nan, 9, false}, {inf, inf, 0, true},
		{inf, -inf, inf, false}, {inf, 1, 1e9, false},
	} {
		if _, ok := within(c.a, c.b, c.tolerance, typeset.Digits); ok != c.ok {
			t.Errorf("within(%g, %g, %g) = %v", c.a, c.b, c.tolerance, ok)
		}
	}
}

func TestMean(t *testing.T) {
	values := []float64{1e16, 1, -1e16, math.NaN(), 2}
	for range 20 {
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(values),
			func(i, j int) { values[i], values[j] = values[j], values[i] })
		if m, undefined := mean(values); m != 0.75 || undefined != 1 {
			t.Errorf("mean %g, %d undefined", m, undefined)
		}
	}
	if m, undefined := mean([]float64{math.NaN()}); !math.IsNaN(m) || undefined != 1 {
		t.Errorf("the mean of nothing is %g", m)
	}
	if m, _ := mean([]float64{math.Inf(1), 1}); !math.IsInf(m, 1) {
		t.Errorf("the mean with an infinite value is %g", m)
	}
}

func TestAlike(t *testing.T) {
	for _, c := range []struct {
		a, b string
		ok   bool
	}{
		{"AUC 0.123 of 6", "AUC 0.124 of 6", true}, {"AUC 0.123", "AUC 0.125", false},
		{"5 of 6", "4 of 6", false},
		{"κ = -1.20, x", "κ = -1.21, x", true}, {"a 0.1", "b 0.1", false}, {"0.1 0.2", "0.1", false},
		{"1.5e-3", "1.6e-3", true}, {"1.5e-3", "1.5e-4", false},
	} {
		if _, ok := alike(textNumber, []byte(c.a), []byte(c.b), lastDigit); ok != c.ok {
			t.Errorf("%q and %q are alike: %v", c.a, c.b, ok)
		}
	}
}

func TestMarks(t *testing.T) {
	w := newWorld()
	for ext, data := range map[string][]byte{".png": w.picture(), ".svg": w.drawing(),
		".pdf": []byte("%PDF-1.5\nxref\n1\nstartxref\n9\n%%EOF\n"), ".tex": []byte("\\textbf{a}\n")} {
		want := "a -- caption with <!-- --> and \"quotes\" – ok"
		b, err := addMark(ext, data, want)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := readMark(ext, b); !ok || got != want {
			t.Errorf("%s: read %+v", ext, got)
		}
		if ext == ".svg" && strings.Count(string(b), "--") > 2 {
			t.Errorf("%s: a comment in a comment:\n%s", ext, b)
		}
		if off, _, _ := unlike(ext, data, b); off != "" {
			t.Errorf("%s: the mark changes the picture: %s", ext, off)
		}
		if _, ok := readMark(ext, data); ok {
			t.Errorf("%s: a mark where there is none", ext)
		}
	}
	for ext, data := range map[string]string{".png": "no picture", ".svg": "<svg>", ".gif": "GIF",
		".pdf": "%PDF-1.5\n", ".tex": "a\xff"} {
		if _, err := addMark(ext, []byte(data), ""); err == nil {
			t.Errorf("%s: %q was taken", ext, data)
		}
	}
}

// FuzzFolder puts arbitrary bytes in place of each file. Whatever they are, the
// run ends, and writing the folder a second time changes nothing.
func FuzzFolder(f *testing.F) {
	r := newWorld().results()
	m, err := compare(nil, r, nil)
	if err != nil {
		f.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(m.files))
	for i, name := range names {
		b := m.files[name]
		f.Add(uint8(i), false, b)
		f.Add(uint8(i), true, b[:len(b)/2])
		f.Add(uint8(i), true, append(slices.Clone(b), b...))
		f.Add(uint8(i), false, []byte("<<<<<<< a\n"+string(b)+"=======\n>>>>>>> b\n"))
	}
	broken := newWorld()
	broken.methods = []string{"abs", "ig", "rise"}
	broken.failed["rise"] = true
	f.Fuzz(func(t *testing.T, file uint8, failed bool, b []byte) {
		disk := maps.Clone(m.files)
		disk[names[int(file)%len(names)]] = b
		now := newWorld().results()
		if failed {
			now = broken.results()
		}
		once, err := compare(disk, now, nil)
		if err != nil {
			t.Fatal(err)
		}
		next := maps.Clone(once.files)
		for _, name := range once.folder.Kept {
			next[name] = disk[name]
		}
		for name := range disk {
			if _, ok := next[name]; !ok && !slices.Contains(once.stale, name) {
				next[name] = disk[name]
			}
		}
		twice, err := compare(next, now, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(twice.verdict.Changed) > 0 {
			name := twice.verdict.Changed[0]
			t.Fatalf("a second time changes %s from\n%s\nto\n%s", name, next[name], twice.files[name])
		}
		if len(twice.verdict.Of(Rewritten)) > 0 || len(twice.verdict.Of(New)) > 0 {
			t.Fatalf("a second time: %s", twice.verdict)
		}
	})
}

// FuzzRead reads arbitrary bytes as each kind of file. What can be read is
// written so that it reads the same again.
func FuzzRead(f *testing.F) {
	m, err := compare(nil, newWorld().results(), nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, b := range m.files {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, l := range readLines(b) {
			want := *l
			want.raw = ""
			text := want.encode()
			again := readLines(text)
			if len(again) != 1 || again[0].raw+"\n" != string(text) {
				t.Fatalf("%q is read from\n%q\nand written as\n%q", l.Cell, l.raw, text)
			}
		}
		for _, r := range readTable(b) {
			if len(r.columns) != len(r.values) {
				t.Fatalf("%q are the values of %q", r.values, r.columns)
			}
		}
		if lines := readItems(b); len(lines) > 0 {
			var first []*ItemLine // those that one file has
			for _, l := range lines {
				if slices.Equal(l.IDs, lines[0].IDs) {
					first = append(first, l)
				}
			}
			text := encodeItems(first)
			if again := readItems(text); len(again) != len(first) || !bytes.Equal(encodeItems(again), text) {
				t.Fatalf("%d lines of items are read again as %d", len(first), len(again))
			}
		}
		for _, p := range legacyAbout(b).passages {
			if again := legacyAbout([]byte(p.String())).passages; len(again) != 1 || *again[0] != *p {
				t.Fatalf("text %+v is read again as %+v", p, again)
			}
		}
		if a := readAbout(b); a != nil {
			text := (&Folder{Command: a.command, Passages: a.passages}).encode()
			again := cmp.Or(readAbout(text), &about{})
			b := (&Folder{Command: again.command, Passages: again.passages}).encode()
			if !bytes.Equal(b, text) {
				t.Fatalf("%q is read again as %q", text, b)
			}
		}
		for _, ext := range []string{".png", ".svg", ".pdf", ".tex"} {
			readMark(ext, b)
		}
	})
}
