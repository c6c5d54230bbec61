package stages

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strconv"
)

// A Digest is a SHA-256: of a payload, or of a key's ingredients.
type Digest [sha256.Size]byte

// Sum returns the digest of b.
func Sum(b []byte) Digest { return sha256.Sum256(b) }

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the digest as String does.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads the text of MarshalText.
func (d *Digest) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(d) {
		return hex.ErrLength
	}
	_, err := hex.Decode(d[:], b)
	return err
}

// Short returns the first 16 hexadecimal digits, for display.
func (d Digest) Short() string { return hex.EncodeToString(d[:8]) }

// An Item names a payload. Its origin is the id of the data set's item from which it was derived.
type Item struct {
	ID     string
	Origin string // equals ID for an item made from a source
	Digest Digest // of the payload
}

// Items is a list of items that need not fit in memory; sequential access is fastest.
type Items interface {
	Len() int
	At(i int) (Item, error)
}

// ItemSlice implements [Items] in memory.
type ItemSlice []Item

// Len returns the number of items.
func (s ItemSlice) Len() int { return len(s) }

// At returns item i. The error is always nil.
func (s ItemSlice) At(i int) (Item, error) { return s[i], nil }

// A Source is one input from outside the experiment: a file, or the seed of a drawn image.
type Source struct {
	ID   string // becomes the id of items made from it; unique within a cell
	File string // path of a file whose bytes determine the payload, or ""
	Note string // everything else that determines the payload: a label, a seed

	// With are the paths of further files whose bytes determine the payload, such as a mask, or "".
	With [2]string
}

// Facts are properties shared by all items of a port. They travel with the items and enter the keys of every
// stage that reads them.
type Facts map[string]string

// ItemsFact is the fact that says in the plural what a port's items are, such as "texts". Images have none.
// Stages needn't know it: [Stage.FactsOf] and [Env.SetFacts] hand it on, and reports say it.
const ItemsFact = "items"

// TextItems are the items of data sets of texts.
const TextItems = "texts"

const (
	imageItems = "images"
	mixedItems = "items"
)

// ItemsOf says in the plural what the items of some cells are: "images", "texts", or "items" if cells differ.
func ItemsOf(data []Data) string {
	names := make([]string, len(data))
	for i, d := range data {
		names[i] = d.Facts[ItemsFact]
	}
	return CommonItems(names)
}

// CommonItems returns the name of items that cells have in common, as [ItemsOf] does. names are the cells'
// facts, "" for images.
func CommonItems(names []string) string {
	if len(names) == 0 {
		return imageItems
	}
	for _, name := range names {
		if name != names[0] {
			return mixedItems
		}
	}
	return cmp.Or(names[0], imageItems)
}

// A Direction is the order in which scores are better.
type Direction string

const (
	Higher Direction = "higher"
	Lower  Direction = "lower"
	None   Direction = "none"
)

// A Measure defines what a score means. It travels as [Facts].
type Measure struct {
	Unit      string // "probability", "share", or "" for a plain number
	Direction Direction
	Low, High float64 // the closed range of possible values; infinite where unbounded
	Tolerance float64 // the absolute difference within which a mean counts as reproduced on another machine
	Variant   string  // "" for the default definition, otherwise the variant's name

	// Chance is the expected mean of random guessing, or 0 if unknown.
	Chance float64

	// ItemTolerance replaces Tolerance for the score of a single item, if it is larger. A score that depends
	// on the order of pixels jumps when rounding on another processor swaps two of almost equal relevance.
	ItemTolerance float64
}

// Facts encodes m and adds more.
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
	maps.Copy(f, more)
	return f
}

// MeasureOf decodes the measure in f. Missing facts have the widest meaning: no direction, no range, no
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

// Names returns the sorted names of f.
func (f Facts) Names() []string { return slices.Sorted(maps.Keys(f)) }

// A Coord places a cell on one axis.
type Coord struct{ Axis, ID string }
