package stats

import (
	"context"
	"math"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// The values of the parameter variant.
const (
	paper    = "paper"
	official = "official"
	both     = "both"
)

// IRRParams are the parameters of [IRR].
type IRRParams struct {
	Rate    string `yaml:"rate" axis:"scores" doc:"the axis whose ids are rated by every image, usually method"`
	Level   string `yaml:"level" doc:"paper: the distance of two ranks" choices:"interval|ordinal|nominal"`
	Variant string `yaml:"variant" doc:"α of the ranks (paper), or as in the code of MAS, of orders and with its denominator (official), or a column and a sentence of each (both), with claims of the paper's" choices:"paper|official|both"`
	NumberedParams
	claims.List
}

// names are those of the number in claims.
func (IRRParams) names() []string { return []string{"alpha"} }

// Known rejects claims that name unknown ids.
func (p IRRParams) Known(ids map[string][]string) error {
	return p.List.Known(but(ids, p.Rate), p.names()...)
}

// NumberedParams number what is rated.
type NumberedParams struct {
	Numbered []string `yaml:"numbered" doc:"official: the ids of what is rated, in the order of their numbers; others follow in alphabetical order"`
}

// contest groups the cells, of competitors in the order of their numbers.
func (p NumberedParams) contest(ctx context.Context, e *stages.Env, rate string) (*scores.Contest,
	error) {
	rate, err := scores.OneAxis("rate", rate, scores.Axes(e.Ports["scores"]))
	if err != nil {
		return nil, err
	}
	return scores.NewContest(ctx, stages.Order{rate: p.Numbered}, e.Label, e.Ports["scores"], "rate", rate)
}

// IRR is the inter-rater reliability of metrics, after Tomsett, Harborne, Chakraborty, Gurram and Preece,
// "Sanity Checks for Saliency Metrics", AAAI 2020.
var IRR = stages.New(stages.Def[IRRParams]{
	Name: "stats/irr",
	Doc: `inter-rater reliability: agreement of images on an order

Every image ranks the methods by their scores, and Krippendorff's α tells how much the
ranks agree over the images: 1 if all give the same order, 0 as by chance. Each
combination of the other collapsed axes, such as metrics, has an α of its own. An image
without a score of some method is left out, for all methods; a method without any score
is left out before that. Tomsett et al., AAAI 2020; Krippendorff, Content Analysis, 2004.`,
	Definition: stages.Definition{
		Formula: "Krippendorff's α = 1 − Dₒ/Dₑ of the methods' ranks, raters being images; Dₒ and Dₑ " +
			"are mean distances (r − r′)² within a method and over all",
		Unit:        "the rank of a method in an image",
		Operator:    "none",
		Response:    "the scores of a metric",
		Reference:   "the disagreement by chance, Dₑ",
		Aggregation: "one α over the images that have a score of every method",
		Randomness:  "none",
		Undefined:   "for fewer than two such images, and where all ranks are equal",
	},
	Version:  6,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: []stages.Port{{Name: "scores", Type: stages.Scores, Averages: true,
		Doc: "scores of all methods"}},
	Outputs: []stages.Port{
		{Name: "alpha", Type: stages.Scores,
			Doc: "α, for report/table: an item for each combination; of both that of the ranks"},
		{Name: "table", Type: stages.TableType, Doc: "α, images, undefined scores"},
		claims.Port,
		claims.AnswerPort,
	},
	Defaults: IRRParams{Level: string(stat.IntervalLevel), Variant: paper},
	Variants: []stages.Variant{{
		Item: "what α is computed of", Default: paper,
		Differs: "official: the code of MAS takes the methods' numbers in the order of their scores for " +
			"ranks, so that with three methods or more α depends on their numbering, and counts a " +
			"value's distance from itself, which makes α larger; both has the two side by side",
		Golden: "irr_icr",
	}},
	Facts: func(p IRRParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Direction: stages.Higher, Low: math.Inf(-1), High: 1, Tolerance: rankTolerance}
		if p.Variant == official {
			m.Variant = official
		}
		return map[string]stages.Facts{"alpha": m.Facts(combinations(in)), "answer": {"ext": "md"}}, nil
	},
	Run: func(ctx context.Context, p IRRParams, e *stages.Env) error {
		c, err := p.contest(ctx, e, p.Rate)
		if err != nil {
			return err
		}
		f := newReliability(c, "Inter-rater reliability of the order of "+c.Axis, "alpha",
			c.Others, p.Variant, claims.Results{Axes: c.Others, Names: p.names(), Label: e.Label})
		for _, m := range c.Cases {
			r := ratingsOf(e, c, m.IDs, [][]*scores.Cell{m.Cells})
			f.add(m.IDs, len(r.images[0]), r.undefined, func(v string) float64 { return p.alpha(r, v) })
			e.Emit("alpha", nameOf(m.IDs), "", stages.Scalar(f.found[0].Values[len(f.table.Rows)-1]))
		}
		return f.set(e, p.List, claims.Words{Verb: "order",
			More: c.Axis + "s more consistently over " + c.Items, Digits: 3},
			map[string]string{paper: "Krippendorff's α", official: "the α of the authors' code"})
	},
})

// alpha returns Krippendorff's α of the images' ranks, NaN of fewer than two.
func (p IRRParams) alpha(r ratings, variant string) float64 {
	images := r.images[0]
	switch {
	case len(images) < 2:
		return math.NaN()
	case variant == official:
		return stat.KrippendorffOfficial(columns(r.orders(0)))
	}
	ranks := make([][]float64, len(images))
	for i := range images {
		ranks[i] = stat.Ranks(images[i])
	}
	return stat.Krippendorff(columns(ranks), stat.Level(p.Level))
}

// rankTolerance is what the mean over images of a rank correlation differs by between machines, where almost
// equal scores change places.
const rankTolerance = 0.02

// A reliability is a table of one number by each of some variants, with what the answer says of it.
type reliability struct {
	items    string // what rates, or is rated: "images"
	seeds    string // a sentence on the seeds over which scores are averaged, "" without any
	variants []string
	table    stages.Table
	found    []*claims.Results // by variant
	left     []string          // combinations with undefined scores
}

// newReliability returns an empty table; tested has what claims call its axes and number.
func newReliability(c *scores.Contest, title, number string, keys []string, variant string,
	tested claims.Results) *reliability {
	f := &reliability{items: c.Items, seeds: c.Seeded(), variants: []string{variant},
		table: stages.Table{Title: title, Keys: keys}}
	if variant == both {
		f.variants = []string{paper, official}
	}
	for _, v := range f.variants {
		column := stages.Column{Name: number, Direction: stages.Higher, Tolerance: rankTolerance, Digits: 3}
		switch {
		case v == official && variant == both:
			column.Name += " of the code"
		case v == official:
			column.Variant = official
		}
		f.table.Numbers = append(f.table.Numbers, column)
		r := tested
		f.found = append(f.found, &r)
	}
	f.table.Numbers = append(f.table.Numbers, stages.Column{Name: "n", Unit: c.Items},
		stages.Column{Name: "undefined", Unit: "scores"})
	return f
}

// add adds the numbers of a combination of ids over n images.
func (f *reliability) add(ids []string, n, undefined int, number func(variant string) float64) {
	var row []float64
	for k, v := range f.variants {
		row = append(row, number(v))
		f.found[k].Add(ids, row[k])
	}
	f.table.Rows = append(f.table.Rows, stages.Row{Keys: ids,
		Numbers: numbers(append(row, float64(n), float64(undefined))...)})
	f.left = leaves(f.left, f.found[0], ids, undefined)
}

// set sets the table, the claims of the first variant, and an answer with what became of them by each one,
// whose numbers have names.
func (f *reliability) set(e *stages.Env, l claims.List, w claims.Words,
	names map[string]string) error {
	var told []string
	for k, v := range f.variants {
		w.Name = names[v]
		o, text, err := answered(f.found[k], l, w)
		if err != nil {
			return err
		}
		if k == 0 {
			e.Set("claims", o.Table(f.table.Numbers[0], 0).Encode())
		}
		told = append(told, text)
	}
	e.Set("table", f.table.Encode())
	e.Set("answer", []byte(strings.Join(told, " ")+leftOut(f.left, f.items, "scores")+f.seeds+"\n"))
	return nil
}

// nameOf names the item of a combination of ids.
func nameOf(ids []string) string {
	if len(ids) == 0 {
		return "all"
	}
	return strings.Join(ids, " ")
}

// A ratings is how good each of the methods that have scores is on each of the images with a score of all of
// them, in every one of some groups of cells. Larger is better, and equal scores of a group are tied.
type ratings struct {
	images    [][][]float64 // by group, image and method
	lower     []bool        // by group: its scores are better if smaller
	undefined int           // scores
}

// ratingsOf reads groups of cells, each by competitor. A competitor without a cell or a score in one of the
// groups is left out and reported, unless no group has it.
func ratingsOf(e *stages.Env, c *scores.Contest, ids []string, groups [][]*scores.Cell) (r ratings) {
	var lists []*scores.List
	for _, cells := range groups {
		lower := false
		for k, cell := range cells {
			if cell == nil {
				continue
			}
			_, undefined := cell.Defined()
			r.undefined += undefined
			if without := missing(groups, k); without != "" {
				e.Warn("%s: %s %s and is left out", nameOf(ids), c.Competitors[k], without)
				continue
			}
			lists = append(lists, cell.Scores)
			lower = cell.Measure.Direction == stages.Lower
		}
		r.lower = append(r.lower, lower)
	}
	r.images = make([][][]float64, len(groups))
	if len(lists) == 0 {
		return r
	}
	shared := scores.Shared(lists)
	methods := len(lists) / len(groups)
	for g := range groups {
		resolution := stat.Resolution(shared[g*methods : (g+1)*methods]...)
		r.images[g] = make([][]float64, len(shared[0]))
		for i := range r.images[g] {
			for k := range methods {
				x := shared[g*methods+k][i]
				if r.lower[g] {
					x = -x
				}
				r.images[g][i] = append(r.images[g][i], x)
			}
			r.images[g][i] = stat.Tied(r.images[g][i], resolution)
		}
	}
	return r
}

// missing says why a competitor can't be rated, "" if it can.
func missing(groups [][]*scores.Cell, k int) string {
	for _, cells := range groups {
		if cells[k] == nil {
			return "is missing"
		}
		if v, _ := cells[k].Defined(); len(v) == 0 {
			return "has no score"
		}
	}
	return ""
}

// orders returns the methods of every image from best to worst, as the official code sorts their scores.
func (r ratings) orders(group int) [][]float64 {
	out := make([][]float64, len(r.images[group]))
	for i, quality := range r.images[group] {
		if r.lower[group] {
			scores := make([]float64, len(quality))
			for k, q := range quality {
				scores[k] = -q
			}
			quality = scores
		}
		out[i] = stat.Order(quality, !r.lower[group])
	}
	return out
}

// columns returns the units that images rate: the numbers of all images at each place.
func columns(images [][]float64) [][]float64 {
	out := make([][]float64, len(images[0]))
	for k := range out {
		out[k] = make([]float64, len(images))
		for i := range images {
			out[k][i] = images[i][k]
		}
	}
	return out
}
