package dataset

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
	"github.com/runexp/runexp/stages/interval"
)

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
	best := m.BestCheap()
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
