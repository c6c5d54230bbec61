// Package fuse has the stage that combines many scores into one answer. fuse/meta-rank (metarank.go) groups
// cells into cases (cases.go), compares the methods in each, and writes tables (tables.go) and a text
// (answer.go).
package fuse

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// MetaRankParams are the parameters of [MetaRank].
type MetaRankParams struct {
	Rank string  `yaml:"rank" axis:"scores" doc:"the axis to compare, usually method; over must collapse it"`
	Clip float64 `yaml:"clip" doc:"the share of cases won is clipped to [clip, 1-clip], so that a method that always wins has a finite score" min:"1e-9" max:"0.25"`
}

// Validate requires the axis.
func (p MetaRankParams) Validate() error {
	if p.Rank == "" {
		return stages.BadField("rank", "rank is required: name the axis to compare")
	}
	return nil
}

// MetaRank fuses the rankings of many cases into one, after Duan et al., "On the Evaluation Consistency of
// Attribution-based Explanations", ECCV 2024.
var MetaRank = stages.New(stages.Def[MetaRankParams]{
	Name: "fuse/meta-rank",
	Doc: `one ranking combined from many

Every combination of the other collapsed axes is a case. In each case the methods are
compared by their mean over the images for which all of them have a score; whether a
large or a small mean is better is a property of the scores. A method's κ is the mean
log-odds of beating another one, the least-squares solution of the paper's equation 6.
Cases in which a method is missing are reported and excluded, and so is a method
without a defined score.
Duan et al., ECCV 2024.`,
	Version:  3,
	Relation: stages.Whole,
	Inputs:   []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "scores of all methods in all cases"}},
	Outputs: []stages.Port{
		{Name: "ranking", Type: stages.TableType,
			Doc: "the methods, best first: κ, pairwise comparisons won, cases, images"},
		{Name: "pairs", Type: stages.TableType,
			Doc: "for every pair of methods, how often one beats the other"},
		{Name: "cases", Type: stages.TableType, Doc: "mean and rank of every method in every case"},
		{Name: "answer", Type: stages.Text, Doc: "the result in words"},
	},
	Defaults: MetaRankParams{Clip: 1e-3},
	Variants: []stages.Variant{{
		Item:    "ties, and methods that win always",
		Default: "a tie is half a win, clip 0.001",
		Differs: "the paper leaves both open; its printed totals need a clip below about 0.01",
		Golden:  "meta_rank",
	}},
	Facts: func(MetaRankParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		return map[string]stages.Facts{"answer": {"ext": "md"}}, nil
	},
	Run: func(ctx context.Context, p MetaRankParams, e *stages.Env) error {
		c, err := groupCases(ctx, p.Rank, e.Ports["scores"])
		if err != nil {
			return err
		}
		for _, l := range c.incomplete {
			e.Warn("case %s is left out: %s", l.name(), l.reason)
		}
		for _, s := range c.unscored {
			e.Warn("%s isn't ranked: all of its %d scores are undefined", s.method, s.scores)
		}
		quality := make([][]float64, len(c.complete))
		for i, k := range c.complete {
			quality[i] = k.quality()
		}
		f := stat.Fuse(quality, p.Clip)
		order := byRank(f, c.methods)
		e.Set("ranking", rankingTable(p, c, f, order).Encode())
		e.Set("pairs", pairsTable(p, c, f, order).Encode())
		e.Set("cases", casesTable(p, c).Encode())
		e.Set("answer", []byte(answer(c, f, order, quality)))
		return nil
	},
})

// A contest holds the methods and the cases in which they are compared.
type contest struct {
	methods    []string     // sorted
	complete   []*scoreCase // complete cases, with a mean of every method, in the order of the cells
	incomplete []*scoreCase // incomplete cases
	axes       []string     // of the cases, sorted
	scores     int          // number of all scores
	unscored   []unscored
}

// An unscored is a method that isn't ranked because none of its scores is defined.
type unscored struct {
	method string
	scores int
}

// A scoreCase is one case.
type scoreCase struct {
	coord     []stages.Coord
	measure   stages.Measure
	cells     []*stages.Data // by method; nil if missing
	mean      []float64      // by method, over the n images
	n         int            // number of images with a score of every method
	undefined []int          // by method: number of undefined scores
	reason    string         // reason why it is incomplete
}

func (m *scoreCase) name() string {
	if len(m.coord) == 0 {
		return "(the only one)"
	}
	parts := make([]string, len(m.coord))
	for i, c := range m.coord {
		parts[i] = c.Axis + "=" + c.ID
	}
	return strings.Join(parts, " ")
}

// quality returns the means, negated if lower is better.
func (m *scoreCase) quality() []float64 {
	q := make([]float64, len(m.mean))
	for i, x := range m.mean {
		q[i] = x
		if m.measure.Direction == stages.Lower {
			q[i] = -x
		}
	}
	return q
}

// rank returns the rank of a method in the case: 1 for the best, shared by ties.
func (m *scoreCase) rank(method int) int {
	q := m.quality()
	rank := 1
	for _, x := range q {
		if x > q[method] {
			rank++
		}
	}
	return rank
}

// pair finds the images with a score of every method, and computes the methods' means over them.
func (m *scoreCase) pair(ctx context.Context, methods []string) error {
	m.mean = make([]float64, len(methods))
	m.undefined = make([]int, len(methods))
	cells := make([]stages.Data, len(m.cells))
	for p, cell := range m.cells {
		cells[p] = *cell
	}
	lists, err := scores.Read(ctx, cells)
	if err != nil {
		return err
	}
	for p, list := range lists {
		for _, x := range list.Values {
			if math.IsNaN(x) {
				m.undefined[p]++
			}
		}
	}
	// All methods are summed in the same order: equal scores give equal sums.
	for p, shared := range scores.Shared(lists) {
		sum := 0.0
		for _, x := range shared {
			sum += x
		}
		if m.n = len(shared); m.n > 0 {
			m.mean[p] = sum / float64(m.n)
		}
		if math.IsInf(m.mean[p], 0) || math.IsNaN(m.mean[p]) {
			return fmt.Errorf("the mean of %s over %d images isn't finite", methods[p], len(lists[p].Values))
		}
	}
	return nil
}
