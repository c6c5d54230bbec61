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
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
	"github.com/runexp/runexp/stages/interval"
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

// SecondPhaseParams are the parameters of [SecondPhase].
type SecondPhaseParams struct {
	Rank   string  `yaml:"rank" axis:"scores,optional" doc:"the axis along which differences from the best count, besides means"`
	Growth float64 `yaml:"growth" doc:"the share by which no interval is to grow more" min:"0.001" max:"10"`
}

// SecondPhase fixes, once, the size of the second phase of double sampling from the pilot: see
// [interval.Sample] and [interval.Needed].
var SecondPhase = stages.New(stages.Def[SecondPhaseParams]{
	Name: "dataset/second-phase",
	Doc: `how many images need exact scores besides a pilot's

From cheap scores of all images and exact ones of a pilot follows how many of the other
images need exact scores, so that no 95 % interval of a mean grows by more than growth over
that of exact scores of all; nor, with rank, that of a difference from the best of a case, nor
the standard error of its signed-rank statistic. It is the largest
N₁/(1 + ((1 + growth)² − 1)·N/(N₁·ρ)), N₁ of N images not in the pilot, with ρ the
variance of exact minus cheap scores over that of exact ones, taken 2/n₀ larger for being of
n₀ images: Cox, "Estimation by Double Sampling", Biometrika 1952. It is at least the pilot's
number, or all. The size is fixed by the pilot alone: exact scores of the
second phase change nothing. Reports with exact: float32 imply it.`,
	Version:  1,
	Relation: stages.Whole,
	Inputs: []stages.Port{
		{Name: "scores", Type: stages.Scores, Averages: true, Doc: "cheap scores of all images"},
		{Name: "pilot", Type: stages.Scores, Averages: true, Doc: "exact scores of the pilot's images"},
	},
	Outputs: []stages.Port{{Name: "size", Type: stages.TableType,
		Doc: "one row: the number of images of the second phase"}},
	Defaults: SecondPhaseParams{Growth: 0.02},
	Run:      runSecondPhase,
})

func runSecondPhase(ctx context.Context, p SecondPhaseParams, e *stages.Env) error {
	cells, err := scores.Load(ctx, e.Ports["scores"])
	if err != nil {
		return err
	}
	all := make([]*scores.Cell, len(cells))
	for i := range cells {
		all[i] = &cells[i]
	}
	if err := scores.AddPilot(ctx, all, e.Ports["pilot"]); err != nil {
		return err
	}
	need := needs{growth: p.Growth}
	for _, c := range all {
		need.of(c.Sample(), c.Sample().Ratio(interval.Pilot))
	}
	if p.Rank != "" {
		c, err := scores.NewContest(ctx, nil, e.Label, e.Ports["scores"], "rank", p.Rank)
		if err != nil {
			return err
		}
		if err := scores.AddPilot(ctx, c.Cells(), e.Ports["pilot"]); err != nil {
			return err
		}
		for i := range c.Cases {
			need.ofLeads(&c.Cases[i])
		}
	}
	t := stages.Table{Title: "Second phase", Numbers: []stages.Column{
		{Name: "images"},
		{Name: "pilot", Unit: "images"},
		{Name: "variance of the error", Unit: "of the scores'", Digits: 4},
	}}
	t.Rows = []stages.Row{{Numbers: []stages.Number{stages.Number(need.size), stages.Number(need.pilot),
		stages.Number(need.ratio)}}}
	e.Set("size", t.Encode())
	return nil
}

// needs are the size of the second phase that suffices for all samples so far, and the ratio of variances
// that asked for it.
type needs struct {
	growth      float64
	size, pilot int
	ratio       float64
}

// of adds a sample with a ratio of variances.
func (n *needs) of(s interval.Sample, ratio float64) {
	if s.Whole() {
		return
	}
	pilot := s.Measured()
	others := len(s.Phases) - pilot
	size := min(others, max(pilot, interval.Needed(pilot, others, ratio, n.growth)))
	n.pilot = max(n.pilot, pilot)
	if size > n.size || size == n.size && ratio > n.ratio {
		n.size, n.ratio = size, ratio
	}
}

// ofLeads adds the differences from the competitor with the best cheap mean, and their ranks.
func (n *needs) ofLeads(m *scores.Case) {
	best := m.Best()
	if best < 0 {
		return
	}
	shared := m.Samples()
	for k := range shared {
		if k != best {
			n.of(shared[k], shared[k].Minus(shared[best]).Ratio(interval.Pilot))
			n.of(shared[k], stat.RankRatio(scores.Differences(shared[k], shared[best])))
		}
	}
}
