package claims

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/stagetest"
)

var nan = math.NaN()

func TestParse(t *testing.T) {
	for text, want := range map[string]Claim{
		"mas > rise, sic":   {Subject: "mas", Relation: Larger, Rivals: []string{"rise", "sic"}},
		" a<* ":             {Subject: "a", Relation: Smaller, Every: true},
		"a beats b":         {Subject: "a", Relation: Better, Rivals: []string{"b"}},
		"correlation > 0.8": {Subject: "correlation", Relation: Larger, Rivals: []string{"0.8"}},
		"final > input where method=ig, ixg setting=gridpg": {Subject: "final", Relation: Larger,
			Rivals: []string{"input"}, Where: []Condition{{"method", []string{"ig", "ixg"}},
				{"setting", []string{"gridpg"}}}},
	} {
		got, err := Parse(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                         ">, <, = or beats is missing",
		"a":                        ">, <, = or beats is missing",
		"> b":                      "a name is missing",
		"a >":                      "a name is missing",
		"a > b,":                   "a name is missing",
		"a > b, b":                 "a name is missing",
		"a > a":                    "compares a with itself",
		"a > b c":                  `"c" is too much`,
		"a > b where":              "no condition",
		"a > b where x":            "isn't axis=id,id",
		"a > b where x=":           "without ids on the axis x",
		"a > b where x=1 x=2":      "two conditions on the axis x",
		"a ≥ b":                    "'≥' is no part",
		"a > b where x=1 > c":      "isn't axis=id,id",
		"a > * , b":                `"," is too much`,
		"a beats better where =id": "isn't axis=id,id",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

// FuzzParse holds that a claim that can be read is written as one that means the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"a > b, c", "a < *", "a beats b where x=y,z w=1", "rho > 0.8", "a > " +
		"b where"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(c.String()); err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("%q is %+v, and %q is %+v: %v", text, c, c.String(), again, err)
		}
		List{[]string{text}}.Known(map[string][]string{"x": {"a", "b"}}, "rho")
	})
}

func TestKnown(t *testing.T) {
	ids := map[string][]string{"method": {"a", "b", "c"}, "net": {"vgg", "vit"}, "one": {"only"}}
	for text, want := range map[string]string{
		"a > b, c where net=vgg": "",
		"rho > 0.8":              "",
		"a > d":                  "names d, which the axis method doesn't have",
		"a > vgg":                "names vgg, which the axis method doesn't have",
		"x > y":                  "names ids that no axis has: x, y",
		"rho > a":                "compares rho, the stage's number, with no number",
		"rho > *":                "compares rho, the stage's number, with no number",
		"a > b where nets=vgg":   `a condition on the axis "nets", which isn't collapsed`,
		"a > b where net=vg":     `a condition on "vg", which the axis net doesn't have`,
		"only > *":               "the axis one, which has no other id",
	} {
		err := List{[]string{text}}.Known(ids, "rho")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if err := (List{[]string{"a > b", "a > b"}}).Validate(); err == nil {
		t.Error("a claim that stands there twice is accepted")
	}
}

// numbers are results by model and metric.
func numbers() *Results {
	r := &Results{Axes: []string{"model", "metric"}, Names: []string{"D"}}
	for i, x := range []float64{1, 0, nan, 0, 0.2, 0.3} {
		r.Add([]string{[]string{"vgg", "vit", "cnn"}[i/2], []string{"a", "b"}[i%2]}, x)
	}
	return r
}

var words = Words{Verb: "differ", More: "more", Name: "D", Digits: 1}

func answerOf(t *testing.T, r *Results, w Words, claims ...string) string {
	t.Helper()
	o, err := r.Test(List{claims})
	if err != nil {
		t.Fatal(err)
	}
	return o.Answer(w)
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		claims []string
		want   string
	}{
		{nil, ""},
		{[]string{"a > b"}, "**a** differs more than **b** in **1 of 3** tests, by D. Not so: a in cnn " +
			"(0.2; b 0.3). " +
			"Undefined: a in vit."},
		{[]string{"a < b"}, "**a** differs less than **b** in **1 of 3** tests, by D. Not so: a in vgg " +
			"(1.0; b 0.0). " +
			"Undefined: a in vit."},
		{[]string{"a > b where model=vgg"}, "**a** differs more than **b** (model vgg), by D: 1.0 " +
			"against 0.0."},
		{[]string{"b > a where model=vgg"}, "**b** doesn't differ more than **a** (model vgg), by D: " +
			"0.0 against 1.0."},
		{[]string{"a > * where model=vit"}, "It is undefined whether **a** differs more than every " +
			"other metric " +
			"(model vit)."},
		{[]string{"D > 0.1 where metric=a"}, "D is above 0.1 (metric a) in **2 of 3** tests. Closest: " +
			"cnn a (0.2). Undefined: vit a."},
		{[]string{"D < 0.1 where model=vgg,cnn", "a > b where model=vgg"},
			"D is below 0.1 (model vgg and cnn) in **1 of 4** tests. Not so: vgg a (1.0); cnn a (0.2); " +
				"cnn b (0.3). " +
				"**a** differs more than **b** (model vgg), by D: 1.0 against 0.0."},
		{[]string{"vgg > vit, cnn where metric=a"}, "It is undefined whether **vgg** differs more than " +
			"**vit** and " +
			"**cnn** (metric a)."},
		{[]string{"vgg > cnn where metric=a", "vgg > vit where metric=a"},
			"**vgg** differs more than its rivals (metric a) in **1 of 2** tests, by D. Closest: vgg " +
				"in a (1.0; cnn 0.2). " +
				"Undefined: vgg in a."},
		// What an experiment run in part doesn't have.
		{[]string{"a > b where model=vgg,resnet"}, "**a** differs more than **b** (model vgg and " +
			"resnet), by D: 1.0 " +
			"against 0.0. Not tested here: no resnet."},
		{[]string{"c > b"}, `"c > b" isn't tested here: no c.`},
		{[]string{"a > c"}, `"a > c" isn't tested here: no c.`},
		{[]string{"a > b where model=resnet"}, `"a > b where model=resnet" isn't tested here: no resnet.`},
	} {
		if got := answerOf(t, numbers(), words, c.claims...); got != c.want {
			t.Errorf("%q:\n%s\nwant\n%s", c.claims, got, c.want)
		}
	}
	if _, err := numbers().Test(List{[]string{"a > b where net=vgg"}}); err == nil {
		t.Error("a condition on no axis is accepted")
	}
	// Of pairs of cases, conditions hold for both.
	pairs := &Results{Axes: []string{"order", "order"}, Names: []string{"rho"}}
	pairs.Add([]string{"x", "y"}, 0.9)
	pairs.Add([]string{"x", "z"}, 0.8)
	pairs.Add([]string{"y", "z"}, 0.7)
	w := Words{Digits: 2, Tests: "pairs of cases"}
	if got, want := answerOf(t, pairs, w, "rho > 0.8"), "Rho is above 0.8 in **1 of 3** pairs of cases. Not "+
		"so: x z (0.80); y z (0.70)."; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got, want := answerOf(t, pairs, w, "rho > 0.8 where order=x,y"),
		"Rho is above 0.8 (order x and y): 0.90."; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// cells are scores of three methods by two metrics of opposite directions; c has images of its own.
func cells(t *testing.T) []*scores.Cell {
	t.Helper()
	var data []stages.Data
	at := func(d stages.Direction, metric, method string, values ...float64) {
		var payloads [][]byte
		for _, x := range values {
			payloads = append(payloads, stages.Scalar(x))
		}
		m := stages.Measure{Unit: "share", Direction: d, Tolerance: 1e-3}
		data = append(data, stagetest.At(stagetest.Items(m.Facts(nil), payloads...), "method", method,
			"metric", metric))
	}
	at(stages.Higher, "ins", "a", .5, .6, .7, .8, .9, .95, .99, 1)
	at(stages.Higher, "ins", "b", .4, .5, .6, .7, .8, .85, .89, .95)
	at(stages.Higher, "ins", "c", .5, .6, .7, .8, .9, .95, .99, 1)
	at(stages.Lower, "del", "a", .1, .2, .3, .1, .2, .3, .1, .2)
	at(stages.Lower, "del", "b", .2, .3, .4, .2, .3, .4, .2, .5)
	at(stages.Lower, "del", "c", nan, nan, nan, nan, nan, nan, nan, nan)
	var all []*scores.Cell
	list, err := scores.Load(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// TestScores: p-values are those of scipy.stats.wilcoxon of the eight differences: 2/2⁸ where all have one
// sign.
func TestScores(t *testing.T) {
	results := func() *Results { return OfScores(cells(t), []string{"method", "metric"}, Mean, "mean") }
	for _, c := range []struct{ claim, want string }{
		{"a > b where metric=ins", "**a** has a larger mean (better) than **b** (metric ins): 0.8050 " +
			"against 0.7113 (p = " +
			"0.0078, n = 8). p is of Wilcoxon's signed-rank test, paired by image, uncorrected; at " +
			"most 0.05 confirms."},
		{"a > b where metric=del", "**a** doesn't have a larger mean (worse) than **b** (metric del): " +
			"0.1875 against " +
			"0.3125 (p = 0.0078, n = 8). p is of"},
		{"a beats b", "**a** has a better mean than **b** in **2 of 2** tests; 2 are confirmed. " +
			"Closest: a in ins " +
			"(0.8050; b 0.7113, p = 0.016). p is of Wilcoxon's signed-rank test, paired by image, " +
			"corrected by Holm " +
			"for 2 tests; at most 0.05 confirms."},
		{"a > b", "**a** has a larger mean than **b** in **1 of 2** tests; 1 is confirmed; in 1 the " +
			"opposite is. " +
			"Not so: a in del (0.1875; b 0.3125, p = 0.016)."},
		{"a > c where metric=ins", "**a** doesn't have a larger mean (better) than **c** (metric ins): " +
			"0.8050 against " +
			"0.8050 (p = 1, n = 8)."},
		{"a > c where metric=del", "It is undefined whether **a** has a larger mean"},
		{"mean > 0.75 where metric=ins", "Mean is above 0.75 (metric ins) in **2 of 3** tests; 0 are " +
			"confirmed."},
	} {
		if got := answerOf(t, results(), MeansOver("images"), c.claim); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q:\n%s\nwant\n%s", c.claim, got, c.want)
		}
	}
	o, err := results().Test(List{[]string{"a beats b", "a > c where metric=del", "z > a"}})
	if err != nil {
		t.Fatal(err)
	}
	number, p := MeanColumn(cells(t))
	table := o.Table(number, p)
	got := ""
	for _, r := range table.Rows {
		got += fmt.Sprintln(strings.Join(r.Keys, "|"), fmt.Sprintf("%.4g", r.Numbers))
	}
	want := `a beats b|holds [2 2 2 0 0.805 0.7113 8 0.01562]
a > c where metric=del|undefined [0 1 NaN 1 0.1875 NaN 0 NaN]
z > a|not tested: no z [0 0 NaN 0 NaN NaN 0 NaN]
`
	if got != want {
		t.Errorf("table\n%swant\n%s", got, want)
	}
	if table.Numbers[4].Tolerance != 1e-3 || table.Numbers[7].Tolerance != 0.02 {
		t.Errorf("tolerances %+v", table.Numbers)
	}
}

// TestMixed: where an id stands for different images, the means are of each's own, without a test.
func TestMixed(t *testing.T) {
	var data []stages.Data
	for _, method := range []string{"a", "b"} {
		d := stagetest.Items(stages.Measure{Unit: "share", Direction: stages.Higher}.Facts(nil),
			stages.Scalar(1), stages.Scalar(map[string]float64{"a": 0.5, "b": 0}[method]))
		items := slices.Clone(d.Items.(stages.ItemSlice))
		items[0].Origin, items[1].Origin, d.Items = "x", "of "+method, items
		data = append(data, stagetest.At(d, "method", method))
	}
	list, err := scores.Load(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	got := answerOf(t, OfScores([]*scores.Cell{&list[0], &list[1]}, []string{"method"}, Mean, "mean"),
		MeansOver("images"), "a > b")
	if want := "**a** has a larger mean (better) than **b**: 0.7500 against 0.5000. Where there is no p, " +
		"the means are of different images, and nothing tests their difference."; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestSeveralRivals: a test of several rivals holds with the largest p, and fails with the smallest of those
// by which it does, times the number of all, whatever their order.
func TestSeveralRivals(t *testing.T) {
	for _, c := range []struct {
		claim string
		p     map[string]float64
		want  float64
	}{
		{"a > *", map[string]float64{"b": 0.01, "c": 0.03, "d": 0.02}, 0.03},
		{"a > *", map[string]float64{"b": 0.01, "c": nan, "d": 0.02}, nan},
		{"a < *", map[string]float64{"b": 0.03, "c": 0.01, "d": 0.02}, 0.03},
		{"a < *", map[string]float64{"b": nan, "c": 0.01, "d": nan}, 0.03},
		{"a < *", map[string]float64{"b": 0.5, "c": 0.6, "d": 0.7}, 1},
		{"a < *", map[string]float64{"b": nan, "c": nan, "d": nan}, nan},
	} {
		for _, order := range []string{"abcd", "dcba", "cadb"} {
			r := &Results{Axes: []string{"method"}}
			for _, id := range strings.Split(order, "") {
				r.Add([]string{id}, map[string]float64{"a": 1}[id])
			}
			r.Compare = func(i, k int) Comparison {
				return Comparison{X: r.Values[i], Y: r.Values[k], N: 9, P: c.p[r.IDs[k][0]]}
			}
			o, err := r.Test(List{[]string{c.claim}})
			if err != nil {
				t.Fatal(err)
			}
			got := o.all[0].tests[0].P
			if math.Abs(got-c.want) > 1e-15 || math.IsNaN(got) != math.IsNaN(c.want) {
				t.Errorf("%s, %v in the order %s: p = %g, want %g", c.claim, c.p, order, got, c.want)
			}
		}
	}
}

// TestFewImages: directions count where nothing can be confirmed.
func TestFewImages(t *testing.T) {
	all := cells(t)
	for _, c := range all {
		c.Scores.Values = c.Scores.Values[:3]
	}
	got := answerOf(t, OfScores(all, []string{"method", "metric"}, Mean, "mean"), MeansOver("images"),
		"a beats b")
	want := "**a** has a better mean than **b** in **2 of 2** tests. Closest: a in ins (0.6000; b " +
		"0.5000). " +
		"With 3 images no difference can be confirmed, however large: it takes at least 7; the counts " +
		"are of " +
		"directions alone."
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestEqual: a number equals another to the decimals that are written.
func TestEqual(t *testing.T) {
	for claim, want := range map[string]bool{
		"mean = 0.75": true, "mean = 0.7": false, "mean = 0.8": true, "mean = 0.752": true, "mean = 1": true,
		"mean = 0": false, "mean = 0.753": false,
	} {
		r := &Results{Names: []string{"mean"}}
		r.Add(nil, 0.7523)
		o, err := r.Test(List{[]string{claim}})
		if err != nil {
			t.Fatal(err)
		}
		if got := o.all[0].tests[0].state == held; got != want {
			t.Errorf("%s of 0.7523 is %v", claim, got)
		}
	}
	for _, claim := range []string{"mean = a", "mean = 5e-1", "a = *", "mean = 1, 2"} {
		if _, err := Parse(claim); err == nil {
			t.Errorf("%s is read", claim)
		}
	}
}

// TestManyRivals: a sentence doesn't list more than a few of them.
func TestManyRivals(t *testing.T) {
	r := &Results{Axes: []string{"method"}}
	for i, id := range strings.Split("abcdefghijklmn", "") {
		r.Add([]string{id}, float64(-i))
	}
	for claim, want := range map[string]string{
		"a > b, c, d, e, f":                         "than **b**, **c**, **d**, **e** and **f**: ",
		"a > b, c, d, e, f, g":                      "than 6 others: ",
		"a > b, c, d, e, f, g, h, i, j, k, l":       "than every other method but **m** and **n**: ",
		"a > b, c, d, e, f, g, h, i, j, k, l, m, n": "than every other method: ",
	} {
		if got := answerOf(t, r, MeansOver("images"), claim); !strings.Contains(got, want) {
			t.Errorf("%s: %s\nwant %s", claim, got, want)
		}
	}
}

// TestDual: a > b holds where b < a does, and nowhere that a < b does; what is counted adds up.
func TestDual(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		results := &Results{Axes: []string{"case", "method"}}
		for c := range 5 {
			for _, m := range []string{"a", "b"} {
				x := float64(r.IntN(4))
				if r.IntN(5) == 0 {
					x = nan
				}
				results.Add([]string{fmt.Sprint("c", c), m}, x)
			}
		}
		count := func(claim string) (good, open, n int) {
			o, err := results.Test(List{[]string{claim}})
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range o.all[0].tests {
				n++
				switch x.state {
				case held:
					good++
				case undefined:
					open++
				}
			}
			return good, open, n
		}
		more, open1, n1 := count("a > b")
		less, open2, n2 := count("b < a")
		opposite, _, _ := count("a < b")
		if more != less || open1 != open2 || n1 != 5 || n2 != 5 || more+opposite+open1 > 5 {
			t.Fatalf("a > b %d, b < a %d, a < b %d, undefined %d and %d, of "+
				"%d", more, less, opposite, open1, open2, n1)
		}
	}
}
