package stages

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"sort"
	"strconv"
)

// A Digest is the SHA-256 of some bytes, or a key made like one.
type Digest [sha256.Size]byte

// Sum returns the digest of b.
func Sum(b []byte) Digest { return sha256.Sum256(b) }

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Short returns the first 16 hexadecimal digits, for people.
func (d Digest) Short() string { return hex.EncodeToString(d[:8]) }

// An Item names a payload. Items keep the origin they were made from: the id of the item of the data set.
type Item struct {
	ID     string
	Origin string // ID itself, for an item made from a source
	Digest Digest // of the payload
}

// Items are a list of items that may be too long for memory: they are read one by one, best in order.
type Items interface {
	Len() int
	At(i int) (Item, error)
}

// ItemSlice are items in memory.
type ItemSlice []Item

// Len returns the number of items.
func (s ItemSlice) Len() int { return len(s) }

// At returns item i. The error is always nil.
func (s ItemSlice) At(i int) (Item, error) { return s[i], nil }

// A Source is one thing outside the experiment: a file, a number to draw an image from.
type Source struct {
	ID   string // becomes the id of the items made from it; unique within a cell
	File string // path of a file whose bytes matter, or ""
	Note string // what else decides the payloads made from it: a label, a seed
}

// Facts hold for all items of a port. They travel with the items and enter the keys of whatever reads them.
type Facts map[string]string

// A Direction says which scores are better.
type Direction string

const (
	Higher Direction = "higher"
	Lower  Direction = "lower"
	None   Direction = "none"
)

// A Measure tells what a score's number means. It travels as [Facts].
type Measure struct {
	Unit      string    // "probability", "share", "" for a plain number
	Direction Direction // which is better
	Low, High float64   // the closed range of possible values; infinite where open
	Tolerance float64   // absolute difference of a mean that counts as reproduced elsewhere
	Variant   string    // "" for the default definition, else the variant's name

	// Chance is the mean that guessing gives, 0 where that isn't known.
	Chance float64

	// ItemTolerance is that of the score of one item, where it's larger: a score that depends on the order of
	// pixels jumps when two of nearly the same relevance change places, which rounding on another processor
	// does. 0 stands for Tolerance.
	ItemTolerance float64
}

// Facts returns m as facts, with those of more added.
func (m Measure) Facts(more Facts) Facts {
	f := Facts{
		"unit": m.Unit, "direction": string(m.Direction), "variant": m.Variant,
		"low": number(m.Low), "high": number(m.High), "tolerance": number(m.Tolerance),
	}
	if m.ItemTolerance != 0 {
		f["item_tolerance"] = number(m.ItemTolerance)
	}
	if m.Chance != 0 {
		f["chance"] = number(m.Chance)
	}
	for k, v := range more {
		f[k] = v
	}
	return f
}

// MeasureOf reads the measure in f. What f doesn't say has the widest meaning: no direction, no range, no
// tolerance.
func MeasureOf(f Facts) Measure {
	m := Measure{Unit: f["unit"], Direction: Direction(f["direction"]), Variant: f["variant"],
		Low: math.Inf(-1), High: math.Inf(1)}
	for name, v := range map[string]*float64{"low": &m.Low, "high": &m.High, "tolerance": &m.Tolerance,
		"item_tolerance": &m.ItemTolerance, "chance": &m.Chance} {
		if x, err := strconv.ParseFloat(f[name], 64); err == nil {
			*v = x
		}
	}
	if m.Direction == "" {
		m.Direction = None
	}
	m.ItemTolerance = max(m.ItemTolerance, m.Tolerance)
	return m
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// Names returns the names of f, sorted.
func (f Facts) Names() []string {
	names := make([]string, 0, len(f))
	for k := range f {
		names = append(names, k)
	}
	sort.Strings(names)
	return names
}

// A Coord places a cell on one axis.
type Coord struct{ Axis, ID string }
