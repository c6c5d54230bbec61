package stats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// WilcoxonParams are the parameters of [Wilcoxon].
type WilcoxonParams struct {
	Among      string  `yaml:"among" axis:"scores" doc:"the axis to compare"`
	Reference  string  `yaml:"reference" doc:"the id to compare the others with; best: the one with the best mean in each case"`
	Alpha      float64 `yaml:"alpha" doc:"the level of the tests" min:"0.0001" max:"0.5"`
	Correction string  `yaml:"correction" doc:"the correction of p for the number of comparisons in a case" choices:"holm|none"`
	Family     string  `yaml:"family" key:"added" doc:"the tests for whose number holm corrects where the reference is the best: all pairs of a case, or those with the best alone, which needs fewer images and has more false alarms, since the scores chose the best: of equal methods in 9 of 100 experiments, not 5" choices:"pairs|best"`
	scores.Exactly
	claims.List
}

// Validate refuses claims and precisions.
func (p WilcoxonParams) Validate() error { return errors.Join(p.List.Validate(), p.Exactly.Validate()) }

// Known rejects claims that name unknown ids.
func (p WilcoxonParams) Known(ids map[string][]string) error { return p.List.Known(ids, "mean") }

// best is the reference that is chosen by the scores.
const best = "best"

// power is that of the test with the number of images in the column needed.
const power = 0.8

// Wilcoxon compares every competitor with a reference by the signed-rank test of the differences, paired by
// image (Wilcoxon 1945; Holm 1979).
var Wilcoxon = stages.New(stages.Def[WilcoxonParams]{
	Name: "stats/wilcoxon",
	Doc: `signed-rank tests against the best or another one

In every combination of the other collapsed axes, every id of among is compared with
the reference over the images that have a score of both. The best is the one with the
best mean over the images that have a score of every competitor. relative is the mean
difference in percent of the reference's mean, as a magnitude. The p-value is
two-sided, exact up to 50 images without ties (13 with them) and otherwise that of the
normal approximation; images with equal scores are dropped. effect is the matched-pairs
rank-biserial correlation in [-1, 1], positive if the scores are mostly above the
reference's. With correction holm, p is corrected for the number of comparisons in the
case: of all pairs if the reference is the best, since the scores chose it, or, with
family: best, of the comparisons with it alone. needed is how many images would have
decided it with a power of 0.8 if the mean difference is real: by the paired t-test, over
the relative efficiency 3/π, at alpha over the number of comparisons. not confirmed is 1
where the corrected p isn't at most alpha. Claims compare means over the images that both have,
by the same test, at alpha; holm then corrects for the number of their tests. Wilcoxon
1945; Holm 1979.
` + scores.ExactDoc + `
Sums of ranks and effects are estimates of those of all images.`,
	Version:  6,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: append([]stages.Port{{Name: "scores", Type: stages.Scores, Averages: true,
		Doc: "scores of all competitors in all cases"}}, scores.ExactPorts("scores", "among")...),
	Outputs: []stages.Port{
		{Name: "table", Type: stages.TableType, Doc: "one row per case and competitor but the reference"},
		claims.Port,
		claims.AnswerPort,
	},
	Defaults: WilcoxonParams{Reference: best, Alpha: 0.05, Correction: "holm", Family: scores.Pairs,
		Exactly: scores.UsualExactly},
	Check: func(p WilcoxonParams, wired func(string) bool) error { return p.CheckExactly(wired) },
	Facts: claims.AnswerFacts[WilcoxonParams],
	Run:   runWilcoxon,
	Hooks: func(p WilcoxonParams) stages.Hooks {
		return stages.Hooks{Power: p.power, Marks: p.family("", 0).String(), Present: p.present}
	},
})

// power describes the tests of a case. Against the best, which the scores chose, all pairs count.
func (p WilcoxonParams) power(in map[string]stages.Amount) stages.Power {
	axis, n := scores.CompetitorsOf(in["scores"], p.Among)
	return p.family(axis, n).Power(in["scores"], nil)
}

func (p WilcoxonParams) family(axis string, competitors int) scores.Family {
	f := scores.Family{Axis: axis, Competitors: competitors, Against: p.Reference,
		Holm: p.Correction == "holm", Level: p.Alpha}
	if p.Reference == best {
		f.Against = p.Family
	}
	return f
}

// A testedCase holds the comparisons of one case.
type testedCase struct {
	*scores.Case
	reference   int
	comparisons []scores.Comparison
	level       float64 // of a single test
}

func runWilcoxon(ctx context.Context, p WilcoxonParams, e *stages.Env) error {
	c, err := scores.NewContest(ctx, nil, e.Label, e.Ports["scores"], "among", p.Among)
	if err != nil {
		return err
	}
	if p.Reference != best && !slices.Contains(c.Competitors, p.Reference) {
		return stages.BadName("reference", p.Reference, append([]string{best}, c.Competitors...),
			"the axis %q has no id %q", c.Axis, p.Reference)
	}
	exact, err := p.AddExact(ctx, e, "scores", c.Cells())
	if err != nil {
		return err
	}
	results := claims.OfScores(c.Cells(), c.Axes(), claims.Mean, "mean")
	results.Level, results.Holm, results.Label = p.Alpha, p.Correction == "holm", e.Label
	outcomes, err := results.Test(p.List)
	if err != nil {
		return err
	}
	e.Set("claims", outcomes.Table(claims.MeanColumn(c.Cells())).Encode())
	unscored := c.DropUnscored()
	var tested []testedCase
	var left []string
	for i := range c.Cases {
		m := &c.Cases[i]
		reference := slices.Index(c.Competitors, p.Reference)
		if p.Reference == best {
			reference = m.Best()
		}
		if reference < 0 || m.Cells[reference] == nil {
			left = append(left, m.Name)
			continue
		}
		t := testedCase{Case: m, reference: reference}
		tests := 0
		t.comparisons, tests = m.Compare(reference, p.Reference == best && p.Family == scores.Pairs,
			p.Correction == "holm")
		t.level = p.Alpha / float64(tests)
		tested = append(tested, t)
	}
	table := p.table(c, tested)
	table.Title += exact.Title()
	e.Set("table", table.Encode())
	text := p.answer(c, tested, left, unscored)
	if exact != nil {
		text = strings.TrimSuffix(text, "\n") + exact.Source() + ".\n"
	}
	if first := outcomes.Answer(claims.MeansOver(c.Items)); first != "" {
		text = first + "\n\n" + text
	}
	e.Set("answer", []byte(text))
	return nil
}

func (p WilcoxonParams) table(c *scores.Contest, tested []testedCase) stages.Table {
	tolerance, pTolerance := 0.0, pTolerance(c.Cases)
	unit, images, needed := "", 0, 0.0
	for i, t := range tested {
		if tolerance = max(tolerance, 2*t.Measure.Tolerance); i == 0 {
			unit = t.Measure.Unit
		} else if unit != t.Measure.Unit {
			unit = ""
		}
		for _, k := range t.comparisons {
			images = max(images, k.N)
			if n := stat.Needed(k.Effect, t.level, power); !math.IsNaN(n) {
				needed = max(needed, n)
			}
		}
	}
	if pTolerance == 0 {
		images, needed = 0, 0
	}
	out := stages.Table{
		Title: "Wilcoxon signed-rank tests among " + c.Axis + " against the " + p.Reference,
		Keys:  slices.Concat([]string{c.Axis}, c.Others, []string{"reference"}),
		Numbers: []stages.Column{
			{Name: "n", Unit: c.Items},
			{Name: "mean difference", Unit: unit, Tolerance: tolerance, Digits: 4},
			{Name: "relative", Unit: "%", Tolerance: relativeTolerance(tested), Digits: 1},
			{Name: "effect", Tolerance: pTolerance, Digits: 3},
			{Name: "statistic", Tolerance: float64(images), Digits: 1},
			{Name: "p", Tolerance: pTolerance, Digits: pDigits},
			{Name: "p corrected", Tolerance: 2 * pTolerance, Digits: pDigits},
			{Name: "needed", Unit: c.Items, Tolerance: math.Ceil(needed / 10)},
			{Name: "not confirmed"},
		},
	}
	for _, t := range tested {
		for _, k := range t.comparisons {
			open := 1.0
			if k.P <= p.Alpha {
				open = 0
			}
			out.Rows = append(out.Rows, stages.Row{
				Keys: slices.Concat(c.Competitors[k.Competitor:k.Competitor+1], t.IDs,
					[]string{c.Competitors[t.reference]}),
				Numbers: numbers(float64(k.N), k.Mean, relative(k), k.Test.Effect(), k.Test.Statistic(),
					k.Test.P, k.P, stat.Needed(k.Effect, t.level, power), open)})
		}
	}
	return out
}

// relative returns the mean difference in percent of the reference's mean.
func relative(k scores.Comparison) float64 {
	if k.Reference == 0 {
		return math.NaN()
	}
	return 100 * k.Mean / math.Abs(k.Reference)
}

// relativeTolerance is how far relative differences may be where means differ by their tolerance.
func relativeTolerance(tested []testedCase) (most float64) {
	for _, t := range tested {
		for _, k := range t.comparisons {
			if size := math.Abs(k.Reference); size > 0 {
				most = max(most, 100*t.Measure.Tolerance*(2+math.Abs(k.Mean)/size)/size)
			}
		}
	}
	return most
}

// detailed is the number of cases up to which an answer describes each.
const detailed = 6

// answer summarises the table in words.
func (p WilcoxonParams) answer(c *scores.Contest, tested []testedCase, left, unscored []string) string {
	var s []string
	all, confirmed, ahead, few, fewest, least := 0, 0, 0, 0, math.MaxInt, 0
	for _, t := range tested {
		enough := stat.LeastPairs(t.level)
		for _, k := range t.comparisons {
			all++
			if k.P <= p.Alpha {
				confirmed++
			}
			if k.Mean < 0 && t.Measure.Direction == stages.Higher ||
				k.Mean > 0 && t.Measure.Direction == stages.Lower {
				ahead++
			}
			if k.N < enough {
				few++
				fewest, least = min(fewest, k.N), max(least, enough)
			}
		}
		if len(tested) <= detailed && len(t.comparisons) > 0 {
			s = append(s, p.sentence(c, t))
		}
	}
	correction := "uncorrected"
	if p.Correction == "holm" {
		correction = "p corrected by Holm"
	}
	method := fmt.Sprintf("(Wilcoxon signed-rank, α = %g, %s, paired over %s)", p.Alpha, correction,
		paired(c, tested))
	switch {
	case all == 0:
		s = append(s, "Nothing can be compared: no case has a reference and another competitor.")
	case few == all:
		s = append(s, fmt.Sprintf("The reference has the better mean in %d of %s, none of which can be "+
			"confirmed with so few %s, however large the difference: it takes at least %d %s.", ahead,
			english.Count(all, "comparison"), c.Items, least, method))
	default:
		s = append(s, fmt.Sprintf("%d of %s from the reference %s confirmed %s.", confirmed,
			english.Count(all, "difference"), english.Are(confirmed), method))
		if few > 0 {
			s = append(s, fmt.Sprintf("%d can't be, however large: the fewest %s of one are %d, and it "+
				"takes at least %d.", few, c.Items, fewest, least))
		}
	}
	return strings.Join(append(s, excluded(c.Items, left, unscored)...), " ") + c.Seeded() + "\n"
}

// sentence says which competitors of a case are better than the reference, which are worse, and which can't
// be told apart from it.
func (p WilcoxonParams) sentence(c *scores.Contest, t testedCase) string {
	var better, worse, other, open []string
	for _, k := range t.comparisons {
		name, number := c.Names[k.Competitor], fmt.Sprintf("%.3g", k.Own)
		good := k.Mean > 0
		if t.Measure.Direction == stages.Lower {
			good = !good
		}
		switch {
		case k.N > 0 && k.Test.N == 0:
			open = append(open, name+" (equal scores)")
		case math.IsNaN(k.P):
			open = append(open, name+" (no "+english.Singular(c.Items)+" with a score of both)")
		case !(k.P <= p.Alpha):
			open = append(open, fmt.Sprintf("%s (%s)", name, pText(k.P)))
		case (k.Mean > 0) != (k.Test.Effect() > 0) || t.Measure.Direction == stages.None:
			other = append(other, fmt.Sprintf("%s (%s, %s)", name, number, pText(k.P)))
		case good:
			better = append(better, fmt.Sprintf("%s (%s, %s)", name, number, pText(k.P)))
		default:
			worse = append(worse, fmt.Sprintf("%s (%s, %s)", name, number, pText(k.P)))
		}
	}
	mean := t.Cells[t.reference].Sample().Estimate()
	text := fmt.Sprintf("%s**%s** (%.3g) has the best mean of %d", in(t.Case), c.Names[t.reference],
		mean, len(t.comparisons)+1)
	if p.Reference != best {
		text = fmt.Sprintf("%s**%s** (%.3g) is the reference for %d", in(t.Case), c.Names[t.reference],
			mean, len(t.comparisons))
	}
	var parts []string
	if len(better) > 0 {
		parts = append(parts, shorter(better)+" "+english.Are(len(better))+" better")
	}
	if len(worse) > 0 {
		parts = append(parts, "it is better than "+shorter(worse))
	}
	if len(other) > 0 {
		parts = append(parts, "it differs from "+shorter(other))
	}
	if len(open) > 0 {
		parts = append(parts, "it can't be told apart from "+shorter(open))
	}
	return text + ": " + strings.Join(parts, "; ") + "."
}

// shorter lists a few names, and counts more.
func shorter(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%d others", len(names))
	}
	return english.And(names)
}

// paired describes the number of images that the comparisons have.
func paired(c *scores.Contest, tested []testedCase) string {
	low, high := math.MaxInt, 0
	for _, t := range tested {
		for _, k := range t.comparisons {
			low, high = min(low, k.N), max(high, k.N)
		}
	}
	if low == high {
		return english.CountOf(low, c.Items)
	}
	return fmt.Sprintf("%d to %d %s", low, high, c.Items)
}

// excluded describes what isn't in a table.
func excluded(items string, left, unscored []string) (s []string) {
	if len(left) > 0 {
		s = append(s, fmt.Sprintf("Left out, without a common direction or %s: %s.", english.Singular(items),
			strings.Join(left, "; ")))
	}
	if len(unscored) > 0 {
		s = append(s, fmt.Sprintf("Without a defined score: %s.", english.And(unscored)))
	}
	return s
}
