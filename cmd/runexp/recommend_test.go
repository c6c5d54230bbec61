package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// drawShapes writes n images of dataset/shapes, which the quickstart's nets have never seen, into the folder
// photos, with their classes.
func (w *world) drawShapes(n int) {
	w.Helper()
	w.write("shapes.yaml", fmt.Appendf(nil, "name: shapes\nseed: 1\nstages:\n  images: {uses: "+
		"dataset/shapes, with: {count: %d, seed: 1000007}}\n", n))
	w.run(0, "get", "shapes.yaml", "images", "-o", "shapes")
	rows, err := csv.NewReader(strings.NewReader(w.read("shapes/labels.csv"))).ReadAll()
	if err != nil || len(rows) != n+1 {
		w.Fatalf("%d rows: %v", len(rows), err)
	}
	const side = 64
	b := []byte(w.read("shapes/images.npy"))
	pixels := b[len(b)-n*3*side*side:]
	labels := "file,label\n"
	for i, row := range rows[1:] {
		m := image.NewNRGBA(image.Rect(0, 0, side, side))
		for k := range side * side {
			at := func(c int) uint8 { return pixels[(i*3+c)*side*side+k] }
			m.Set(k%side, k/side, color.NRGBA{at(0), at(1), at(2), 255})
		}
		w.writePNG("photos/"+row[0]+".png", m)
		labels += row[0] + ".png," + row[2] + "\n"
	}
	w.write("photos/labels.csv", []byte(labels))
}

// recommended runs recommend, and returns what it reports.
func (w *world) recommended(args ...string) (r recommendation, e ending) {
	w.Helper()
	e = w.run(0, append([]string{"recommend", "--images", "photos", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(e.stdout), &r); err != nil {
		w.Fatalf("%v\n%s", err, e.stdout)
	}
	return r, e
}

// most leaves a few candidates in tests.
const most = "rise,score-cam,ablation-cam,transition-attention,occlusion,recipro-cam,smoothgrad,abslrp," +
	"lrp-epsilon,attn-lrp,deeplift,refine-cam"

// TestRecommend plays fixed rounds on two of the quickstart's nets, with images that they have never
// seen. The experiment passes check and runs; a full comparison of all candidates, on the images of the
// confirmation, confirms none against what the tournament confirms.
func TestRecommend(t *testing.T) {
	runtimeOrSkip(t)
	for _, tt := range stagetest.Sample(t, 2, []string{"resnet", "vit"}) {
		t.Run(tt, func(t *testing.T) {
			w := newWorld(t, nil)
			w.drawShapes(48)
			flags := []string{net(t, tt), "--preset", "half", "--without", most, "--rounds", "12x2,6x8,3x12"}
			r, e := w.recommended(append(flags, "--out", "net.yaml")...)
			if r.Better != stages.Higher || r.Metric != "rise-score.difference" || len(r.Untried) < 2 {
				t.Errorf("%s, %s is better, not tried: %v", r.Metric, r.Better, r.Untried)
			}
			w.holdsTogether(r)
			const rounds = "12x2,6x8,3x12"
			if r.Schedule.String() != rounds || !strings.HasSuffix(r.Repeat, "--rounds "+rounds) {
				t.Errorf("rounds %s; %s", r.Schedule, r.Repeat)
			}
			if w.read("net.yaml") != r.Experiment {
				t.Error("the file isn't the experiment of the report")
			}
			if bad := lacking(r.Experiment, []string{"sample_skip: 8", "beats * where metric=rise",
				"# round 1, ", "\n    constant: ", "\n    random: "}); bad != nil {
				t.Errorf("%q in\n%s", bad, r.Experiment)
			}
			if e := w.run(0, "check", "net.yaml"); strings.Contains(e.stderr, "error") {
				t.Errorf("check says %s", e.stderr)
			}
			w.run(0, "run", "net.yaml", "--quiet")
			if page := w.read("artifacts/net/README.md"); !strings.Contains(page, r.Ranking[0].ID) {
				t.Errorf("%s isn't in\n%s", r.Ranking[0].ID, page)
			}
			// Nothing is computed again, and the result is the same.
			again, _ := w.recommended(flags...)
			e = w.run(0, "plan", "net.yaml", "--check")
			if again.Seconds = r.Seconds; !reflect.DeepEqual(again.Ranking, r.Ranking) ||
				!reflect.DeepEqual(again.Dropped, r.Dropped) {
				t.Errorf("again: %v\nbefore: %v\n%s", again.Ranking, r.Ranking, e.stderr)
			}
			w.agreesWithAll(r, tt)
		})
	}
}

// holdsTogether checks what holds of every recommendation with a confirmation.
func (w *world) holdsTogether(r recommendation) {
	w.Helper()
	first, before, seen := 0, math.Inf(1), map[string]bool{}
	for _, f := range r.Ranking {
		if f.First {
			first++
		}
		if float64(f.Mean) > before || seen[f.ID] || f.First == (f.P != nil) {
			w.Errorf("%+v isn't in its place", f)
		}
		before, seen[f.ID] = float64(f.Mean), true
		if f.Confirmed && *f.P > 0.05 || !f.First && !f.Confirmed && *f.P <= 0.05 {
			w.Errorf("%s: p is %v, confirmed: %v", f.ID, *f.P, f.Confirmed)
		}
	}
	if first != 1 || !seen[control] {
		w.Errorf("%d are the first of the rounds, of %v", first, r.Ranking)
	}
	for _, list := range [][]absence{r.Equal, r.Untried, r.Refused} {
		for _, a := range list {
			if seen[a.ID] || a.Why == "" {
				w.Errorf("%s is twice in the report, or has no reason: %q", a.ID, a.Why)
			}
			seen[a.ID] = true
		}
	}
	for _, d := range r.Dropped {
		if seen[d.ID] || d.Round < 1 {
			w.Errorf("%s is twice in the report, or was dropped by no round: %d", d.ID, d.Round)
		}
		seen[d.ID] = true
	}
}

// agreesWithAll compares all candidates of a tournament with its first, on the images of its confirmation.
// The leads over finalists are the same, what is confirmed of them is significant, and no candidate, dropped
// ones included, is confirmed to be better than the first.
func (w *world) agreesWithAll(r recommendation, name string) {
	w.Helper()
	var first finalist
	for _, f := range r.Ranking {
		if f.First {
			first = f
		}
	}
	text := strings.NewReplacer("sample_skip: 8", "sample_skip: 24\n      sample: 12",
		"      sample: 40\n", "").Replace(r.Experiment)
	text = regexp.MustCompile(`(?m)^    # (\S+: +\{uses: .*\})  # round .*$`).ReplaceAllString(text, "    $1")
	text = strings.ReplaceAll(text, "    # Left out:\n", "")
	text = regexp.MustCompile(`(?m)^    # \S+: [^{].*\n`).ReplaceAllString(text, "")
	text = strings.Replace(text, "publish: [", "  tests: {uses: stats/wilcoxon, in: "+
		"{scores: rise-score.difference}, over: all, with: {among: method, "+
		"reference: "+first.ID+", correction: none}}\npublish: [", 1)
	w.write(name+"-all.yaml", []byte(text))
	rows, err := csv.NewReader(strings.NewReader(
		w.run(0, "get", name+"-all.yaml", "tests", "--as", "csv").stdout)).ReadAll()
	if err != nil || len(rows) < len(r.Ranking)+len(r.Dropped) {
		w.Fatalf("%d rows for %d candidates: %v", len(rows), len(r.Ranking)+len(r.Dropped), err)
	}
	at := map[string]int{}
	for k, head := range rows[0] {
		at[head] = k
	}
	number := func(row []string, name string) float64 {
		x, err := strconv.ParseFloat(row[at[name]], 64)
		if err != nil {
			w.Fatal(err)
		}
		return x
	}
	found := 0
	for _, row := range rows[1:] {
		p := number(row, "p") * float64(len(rows)-1)
		if number(row, "mean difference") > 0 && p <= 0.05 {
			w.Errorf("%s is better than the first, %s: p is %g, corrected for all", row[0], first.ID, p)
		}
		k := slices.IndexFunc(r.Ranking, func(f finalist) bool { return f.ID == row[0] })
		if k < 0 {
			continue
		}
		f := r.Ranking[k]
		if lead := -number(row, "mean difference"); math.Abs(lead-float64(*f.Lead)) > 1e-6 {
			w.Errorf("the lead over %s is %v, and in a run of all %v", f.ID, *f.Lead, lead)
		}
		if f.Confirmed && number(row, "p") > 0.05 {
			w.Errorf("the lead over %s is confirmed, and in a run of all p is %s", f.ID, row[at["p"]])
		}
		found++
	}
	if found != len(r.Ranking)-1 {
		w.Errorf("%d finalists were found again, of %d", found, len(r.Ranking))
	}
}

// TestRecommendInTime: a tournament in few seconds names what it couldn't try, or ends with all images;
// the same call has the same rounds out of the store.
func TestRecommendInTime(t *testing.T) {
	runtimeOrSkip(t)
	w := newWorld(t, nil)
	w.drawShapes(24)
	flags := []string{net(t, "vgg"), "--preset", "half", "--metric", "deletion", "--time", "8s"}
	r, _ := w.recommended(flags...)
	if r.Better != stages.Lower || r.Metric != "rise-score.deletion" {
		t.Errorf("%s, %s is better", r.Metric, r.Better)
	}
	known := len(r.Ranking) + len(r.Dropped) + len(r.Equal) + len(r.Untried) + len(r.Refused)
	if known < 30 {
		t.Errorf("%d candidates are in the report", known)
	}
	if len(r.Untried) > 0 || len(r.Ranking) == 0 {
		return // too slow for all candidates: the next call goes on
	}
	again, e := w.recommended(flags...)
	if again.Schedule.String() != r.Schedule.String() || !reflect.DeepEqual(again.Ranking, r.Ranking) ||
		!strings.Contains(e.stderr, "the rounds are those of an earlier call") {
		t.Errorf("rounds %s and then %s\n%s", r.Schedule, again.Schedule, e.stderr)
	}
}

func TestRecommendRefuses(t *testing.T) {
	w := newWorld(t, nil)
	w.drawPhotos(3, 64, false)
	w.write("there.yaml", nil)
	model := net(t, "resnet")
	for _, tt := range []struct{ args, want string }{
		{"", "recommend needs --images"},
		{"--images photos --metric speed", "--metric is one of rise, insertion, deletion, mas, iou, " +
			"pointing, mass"},
		{"--images photos --time soon", `such as 90s, 2m or 1h, not "soon"`},
		{"--images photos --rounds 3", "is no round"},
		{"--images photos --out there.yaml", "there.yaml exists"},
	} {
		e := w.run(exitUsage, append([]string{"recommend", model}, strings.Fields(tt.args)...)...)
		if !strings.Contains(e.stderr, tt.want) {
			t.Errorf("%s: %s, not %q", tt.args, e.stderr, tt.want)
		}
	}
	runtimeOrSkip(t)
	for _, tt := range []struct{ args, want string }{
		{"--preset nosuch", "--preset is one of caffe-bgr, "},
		{"--preset half --metric iou", "--metric iou needs the objects' masks or boxes"},
		{"--preset half --without grad-cma", `no candidate is called "grad-cma"`},
		{"--preset half --rounds 99x1,2x1", "round 1 has 99 candidates, and there are "},
		{"--preset half --rounds 3x2,2x1", "round 1 has 2 images, and the rounds have half of the 3"},
		{"--preset half --without " + most + " --rounds 3x1,2x3",
			"the confirmation has 3 images, and half of the 3"},
	} {
		e := w.run(exitUsage, append([]string{"recommend", model, "--images", "photos"},
			strings.Fields(tt.args)...)...)
		if !strings.Contains(e.stderr, tt.want) {
			t.Errorf("%s: %s, not %q", tt.args, e.stderr, tt.want)
		}
	}
}
