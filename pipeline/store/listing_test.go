package store

import (
	"errors"
	"os"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
)

// newListing returns an empty listing of a store that can't be written.
func newListing(facts stages.Facts, parts Parts) *Listing {
	s := &Store{opts: Options{ReadOnly: true}}
	s.setUp, s.spill.s = s.prepare, s
	return s.NewListing(facts, parts)
}

// listingOf returns a listing of some entries.
func listingOf(facts stages.Facts, parts Parts, entries ...Entry) *Listing {
	l := newListing(facts, parts)
	for _, e := range entries {
		l.Append(e)
	}
	return l
}

// TestListingDigest: facts, payloads and their order count; ids and places don't.
func TestListingDigest(t *testing.T) {
	a := Ref{Digest: number(1), Len: 100, Object: ObjectRef{number(7), 300}, Off: 10}
	b := Ref{Digest: number(2), Len: 100, Object: ObjectRef{number(7), 300}, Off: 200}
	digest := func(facts stages.Facts, parts Parts, entries ...Entry) stages.Digest {
		return listingOf(facts, parts, entries...).digest()
	}
	share := stages.Facts{"unit": "share"}
	listing := func(refs ...Ref) stages.Digest {
		var entries []Entry
		for _, r := range refs {
			entries = append(entries, Entry{Ref: r})
		}
		return digest(share, 0, entries...)
	}
	base := listing(a, b)
	moved := a
	moved.Object, moved.Off = ObjectRef{number(8), 100}, 0
	for name, d := range map[string]stages.Digest{
		"ids":     digest(share, IDs, Entry{Ref: a, ID: "x"}, Entry{Ref: b, ID: "y"}),
		"parents": digest(share, Parents, Entry{Ref: a, Parent: 3}, Entry{Ref: b, Parent: 4}),
		"places":  listing(moved, b),
		"dropped": listing(a.Dropped(), b.Dropped()),
	} {
		if d != base {
			t.Errorf("%s count", name)
		}
	}
	seen := map[stages.Digest]string{base: "base"}
	for name, d := range map[string]stages.Digest{
		"order": listing(b, a), "fewer": listing(a), "more": listing(a, b, b), "none": listing(),
		"fact":       digest(stages.Facts{"unit": "logit"}, 0, Entry{Ref: a}, Entry{Ref: b}),
		"more facts": digest(stages.Facts{"unit": "share", "x": ""}, 0, Entry{Ref: a}, Entry{Ref: b}),
		"no facts":   digest(nil, 0, Entry{Ref: a}, Entry{Ref: b}),
		"moved text": digest(stages.Facts{"units": "hare"}, 0, Entry{Ref: a}, Entry{Ref: b}),
	} {
		if other, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[d] = name
	}
}

// TestListingFormat: the bytes of listings, and their digests, are those of all stores of this format.
func TestListingFormat(t *testing.T) {
	inObject := func(n int) Ref {
		return Ref{Digest: number(n), Object: ObjectRef{number(n / 32), 32 * 150_528},
			Off: int64(n%32) * 150_528,
			Len: 150_528}
	}
	inline := func(text string) Ref {
		return Ref{Digest: stages.Sum([]byte(text)), Len: int64(len(text)), Inline: []byte(text)}
	}
	facts := stages.Facts{"unit": "share", "classes": "10"}
	for _, c := range []struct {
		name         string
		l            *Listing
		dropped      bool
		digest, text string // in hexadecimal, as of version 1
	}{
		{"many", manyItems(10_000), false, "f6e324c399ca1a23515c6b65fe6886bba9af4d07968ac3544fcece336ab37f5c",
			"9aa58c00bdbea882f1fe19b1456b7e3c80988133a8710e29e5b088729b79251f"},
		{"dropped", manyItems(10_000), true,
			"f6e324c399ca1a23515c6b65fe6886bba9af4d07968ac3544fcece336ab37f5c",
			"8881eef47cf5b6a40279c2e599ab316321b05161216fee7eca18b08818b98a8a"},
		{"nothing", newListing(nil, 0), false,
			"7c15d4d33a824d274cd79f68e9189883ac9e8eeeb01f5461065433358426e2f5",
			"957b88b12730e646e0f33d3618b77dfa579e8231e3c59c7104be7165611c8027"},
		{"one value", listingOf(facts, IDs|Origins, Entry{Ref: inObject(3)}), false,
			"c47ca3f98e9235234d9e93b076ba1adcbb449625838114e929866f0c4b59caea",
			"984014380a1574df3532582ca6982b7820d1a53f66b7d5bbec2d05e2d290ab19"},
		{"scores",
			listingOf(facts, 0, Entry{Ref: inline("0.5")}, Entry{Ref: inline("")},
				Entry{Ref: inObject(1).Dropped()}), false,
			"763d730213c6f97e263555af16720601b606a91fa13f57318308b22259694941",
			"ed00d5eff4d2030a33ebcc814a4ace92568c3eb1afb52a1950996e74064a910f"},
		{"crops",
			listingOf(nil, Parents|IDs, Entry{Ref: inObject(40), ID: "left"},
				Entry{Ref: inObject(2), Parent: 300, ID: "right"}), false,
			"7023da24a91d5d8f94e4c1a6a088301a8cff3b1b2bd6945032b9a37ab3a240b9",
			"c0d2e77b0c1f706783ae04540b780bf9e50dfbf5d185344a4b9e65ecd478e97f"},
		{"pairs",
			listingOf(nil, IDs|Origins, Entry{Ref: inObject(1), ID: "a", Origin: "a"},
				Entry{Ref: inObject(2), ID: "b", Origin: "a"}), false,
			"6c7423f6ea48f51e4cda9dc3dfb61fc6451c7aade45a39b4b4a32a60bedaafcd",
			"6f9f521101bd3f96be7bedec81b5e6a0e54f5eda950bf1a2bcdb47b9d89ff1c6"},
	} {
		l := c.l
		if c.dropped {
			l = l.dropped()
		}
		digest, text := l.digest(), slices.Concat(l.encode()...)
		if digest.String() != c.digest || stages.Sum(text).String() != c.text {
			t.Errorf("%s: the digest is %s, that of its %d bytes %s", c.name, digest, len(text),
				stages.Sum(text))
		}
	}
}

// TestListingSize: a listing of 10,000 items takes at most 100 bytes an item, whether it's made or read.
func TestListingSize(t *testing.T) {
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const items = 10_000
	before := live()
	made := manyItems(items)
	between := live()
	read := must(decodeListing(slices.Concat(made.encode()...)))
	after := live()
	t.Logf("%d items: %d bytes in memory when made, %d when read", read.Len(), between-before, after-between)
	if between-before > 100*items || after-between > 100*items {
		t.Errorf("%d and %d bytes", between-before, after-between)
	}
	runtime.KeepAlive(made)
	runtime.KeepAlive(read)
}

// manyItems returns a listing of images with names.
func manyItems(items int) *Listing {
	l := newListing(stages.Facts{"unit": "share"}, IDs|Origins)
	for n := range items {
		id := "ILSVRC2012_val_" + number(n).Short()[:8]
		r := Ref{Digest: number(n), Object: ObjectRef{number(n / 32), 32 * 150_528},
			Off: int64(n%32) * 150_528,
			Len: 150_528}
		l.Append(Entry{Ref: r, ID: id, Origin: id})
	}
	return l
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestKillLargeListing kills the recording of a listing that is written in many pieces at every point. Then
// it's there, all of it, or not at all.
func TestKillLargeListing(t *testing.T) {
	record := func(s *Store) error {
		l := manyItems(1000)
		return s.Record(Action{Key: number(1), Cell: "maps",
			Outputs: []Output{{Port: "maps", Dropped: true}}}, []*Listing{l})
	}
	whole := func(dir string) bool {
		s := open(t, dir, Options{})
		defer s.Close()
		h, ok := s.Lookup(number(1), "")
		if !ok {
			return false
		}
		l := must(s.Listing(h, 0))
		want := manyItems(1000)
		for i := range want.Len() {
			a, b := want.At(i), l.At(i)
			if a.Ref = a.Ref.Dropped(); !reflect.DeepEqual(a, b) {
				t.Fatalf("item %d is %+v, want %+v", i, b, a)
			}
		}
		return true
	}
	for _, tear := range []int{0, 1} {
		kept := 0
		for n := 1; ; n++ {
			dir := scratch(t)
			k := &killer{n: n, tear: tear}
			err := record(open(t, dir, Options{Hook: k.hook}))
			if !k.struck() {
				if err != nil || !whole(dir) {
					t.Fatalf("without a kill: %v", err)
				}
				t.Logf("tear %d: killed at %d points", tear, n-1)
				if n < 5 || kept > n/2 {
					t.Errorf("%d points, and the listing is there after %d of them", n-1, kept)
				}
				break
			}
			if err == nil {
				t.Fatalf("killed at point %d, and nobody noticed", n)
			}
			if whole(dir) {
				kept++
			}
			s := open(t, dir, Options{})
			if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
				t.Fatalf("killed at point %d: verify says %v %v", n, problems, err)
			}
			if err := errors.Join(record(s), s.Close()); err != nil || !whole(dir) {
				t.Fatalf("killed at point %d: can't be mended: %v", n, err)
			}
			os.RemoveAll(dir)
		}
	}
}
