package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
)

// DrawParams are the parameters of [Draw].
type DrawParams struct {
	Pilot int `yaml:"pilot" doc:"number of images of the pilot" min:"1" max:"100000000"`
}

// Draw draws a simple random sample without replacement, in two phases: without size the pilot, with size the
// second phase, which is of the other images. The images are in the order of a hash of the seed and their
// ids, so that two lists with common images draw alike.
var Draw = stages.New(stages.Def[DrawParams]{
	Name: "dataset/draw",
	Doc: `a random part of the images, in two phases

A simple random sample without replacement: the pilot, or if size is wired as many of the
other images as its table says: Neyman, "Contribution to the Theory of Sampling Human
Populations", JASA 1938. Reports with exact: float32 imply it. Which images are drawn depends
on the seed and on the images' names alone. They stay in their order.

  pilot: {uses: dataset/draw, in: {images: photos}, with: {pilot: 50}}`,
	Version:  1,
	Relation: stages.Whole,
	Seeded:   true,
	Named:    true, // what is drawn depends on ids
	Inputs: []stages.Port{
		{Name: "images", Type: stages.Images, Texts: true, Optional: true, Doc: "the images"},
		{Name: "maps", Type: stages.Maps, Optional: true, Doc: "instead, or besides: maps of the images"},
		{Name: "size", Type: stages.TableType, Optional: true,
			Doc: "the size of the second phase, of dataset/second-phase"},
	},
	Outputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "the drawn images"},
		{Name: "maps", Type: stages.Maps, Doc: "the maps of the drawn images"},
	},
	Defaults: DrawParams{Pilot: 32},
	Check: func(_ DrawParams, wired func(string) bool) error {
		if !slices.ContainsFunc(drawnPorts, wired) {
			return errors.New("there is nothing to draw from: wire images or maps")
		}
		return nil
	},
	Facts: func(_ DrawParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		out := map[string]stages.Facts{}
		for _, port := range drawnPorts {
			if in[port] != nil {
				out[port] = in[port]
			}
		}
		return out, nil
	},
	Run: func(_ context.Context, p DrawParams, e *stages.Env) error {
		for _, port := range drawnPorts {
			if err := p.draw(e, port); err != nil {
				return err
			}
		}
		return nil
	},
	Hooks: func(p DrawParams) stages.Hooks {
		return stages.Hooks{
			Lacks: func(port string, wired func(string) bool) error {
				if !wired(port) {
					return fmt.Errorf("dataset/draw draws %s if they are wired to it", port)
				}
				return nil
			},
			Most: func(in map[string]stages.Amount) int { return max(in["images"].Items, in["maps"].Items) },
		}
	},
})

// drawnPorts are the ports of which items are drawn, alike.
var drawnPorts = []string{"images", "maps"}

// draw draws the items of a port.
func (p DrawParams) draw(e *stages.Env, port string) error {
	if !e.Wired(port) {
		return nil
	}
	if n := len(e.Ports[port]); n > 1 {
		return fmt.Errorf("%s are of %d cells: wire those of one", port, n)
	}
	order, err := drawOrder(e.Seed, e.Ports[port][0].Items)
	if err != nil {
		return err
	}
	from, to := 0, p.Pilot
	if e.Wired("size") {
		size, err := sizeOf(e)
		if err != nil {
			return err
		}
		from, to = p.Pilot, p.Pilot+size
	}
	from, to = min(from, len(order)), min(to, len(order))
	chosen := slices.Sorted(slices.Values(order[from:to]))
	for _, i := range chosen {
		if err := e.Pass(port, port, i); err != nil {
			return err
		}
	}
	return nil
}

// drawOrder returns the positions of items in a random order, which depends on the seed and their ids.
func drawOrder(seed uint64, items stages.Items) ([]int, error) {
	order, hashes := make([]int, items.Len()), make([]stages.Digest, items.Len())
	for i := range order {
		item, err := items.At(i)
		if err != nil {
			return nil, err
		}
		h := sha256.New()
		h.Write(binary.LittleEndian.AppendUint64([]byte("draw\x00"), seed))
		h.Write([]byte(item.ID))
		order[i], hashes[i] = i, stages.Digest(h.Sum(nil))
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(hashes[a][:], hashes[b][:]) })
	return order, nil
}

// sizeOf returns the number in the column images of the table's only row.
func sizeOf(e *stages.Env) (int, error) {
	b, err := e.Value("size")
	if err != nil {
		return 0, err
	}
	t, err := stages.DecodeTable(b)
	if err != nil {
		return 0, err
	}
	if len(t.Rows) != 1 || !(t.Number(t.Rows[0], "images") >= 0) {
		return 0, fmt.Errorf("the table %q has no size: wire that of dataset/second-phase", t.Title)
	}
	return int(t.Number(t.Rows[0], "images")), nil
}
