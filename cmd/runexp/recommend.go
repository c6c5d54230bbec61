package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
)

func recommendVerb(f flags) *verb {
	r := recommendFlags{metric: "rise", time: "2m"}
	f["--images"], f["--metric"], f["--time"], f["--rounds"] = &r.images, &r.metric, &r.time, &r.rounds
	f["--without"], f["--seed"], f["--out"], f["--json"] = &r.without, &r.seed, &r.out, &r.json
	r.look, r.engine = f.look(), f.engine()
	f["--preset"] = &r.look.Preset
	return &verb{
		name: "recommend", takes: arity{1, 1, "an ONNX file"}, drains: true,
		run: func(ctx context.Context, u *ui, args []string) error {
			return r.run(ctx, u, args[0])
		},
	}
}

type recommendFlags struct {
	images, metric, time, rounds, without, out string
	seed                                       int
	json                                       bool
	look                                       *registry.Look
	engine                                     *engineFlags
}

// A metricChoice is a number by which a tournament ranks.
type metricChoice struct {
	name, stage, port string
	what              string
	Places            bool // it needs masks or boxes
}

// Port names the metric's scores in an experiment.
func (m metricChoice) Port() string {
	if m.port == "scores" {
		return m.stage
	}
	return m.stage + "." + m.port
}

var metricChoices = []metricChoice{
	{"rise", "rise-score", "difference", "area under insertion minus that under deletion", false},
	{"insertion", "rise-score", "insertion", "area under the insertion curve", false},
	{"deletion", "rise-score", "deletion", "area under the deletion curve", false},
	{"mas", "mas", "difference", "magnitude-aligned insertion minus deletion", false},
	{"iou", "iou", "scores", "overlap with the objects", true},
	{"pointing", "pointing", "scores", "hits of the objects", true},
	{"mass", "mass", "scores", "share of the relevance on the objects", true},
}

// A tournament chooses among candidates by successive halving (Jamieson and Talwalkar, "Non-stochastic
// Best Arm Identification and Hyperparameter Optimization", AISTATS 2016) on one half of the images, and
// tests the finalists on the other.
type tournament struct {
	*starter
	u       *ui
	session *session
	dir     string // to which the paths of its experiments are relative
	metric  metricChoice

	began, end time.Time // end is zero with a schedule that was given
	grace      time.Duration
	slower     float64 // how much slower than estimated the rounds were
	memo       stages.Digest
	schedule   schedule
	prices     map[string]price

	standings        []standing // after the last round, best first
	dropped          []dropped  // by the rounds
	twins            []absence  // equal to another candidate
	untried, refused []absence  // for lack of time; by the model
	final            *final     // nil without one
	lower            bool       // smaller scores are better
	took             time.Duration
}

// A dropped is a candidate that a round has dropped.
type dropped struct {
	standing
	round int // from 1
}

func (f *recommendFlags) run(ctx context.Context, u *ui, model string) error {
	t := &tournament{u: u, dir: ".", began: time.Now(), prices: map[string]price{}, slower: 1}
	limit, err := f.check(t)
	if err != nil {
		return err
	}
	if f.out != "" {
		t.dir = filepath.Dir(f.out)
		if _, err := os.Lstat(f.out); err == nil {
			return exists(f.out)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return environment(err)
		}
	}
	if t.session, err = f.engine.open(u, false); err != nil {
		return err
	}
	if _, err := ort.Default(); err != nil {
		return err
	}
	t.starter = &starter{Name: starterName(model), Seed: max(f.seed, 1), Draw: max(f.seed, 1)}
	quiet := *u
	quiet.out = &output{to: u.err}
	if err := t.examine(ctx, &quiet, t.dir, model, f.images, f.look); err != nil {
		return err
	}
	t.verdict(&quiet)
	if t.Folder.Images < 2 {
		return usage(fmt.Errorf("%s has one image", f.images), "one half of them chooses, the other confirms")
	}
	if t.metric.Places && t.Folder.Masks+t.Folder.Boxes == "" {
		return usage(fmt.Errorf("--metric %s needs the objects' masks or boxes", t.metric.name),
			"put them into a folder masks or annotations in "+f.images+`, as "runexp new --help" says`)
	}
	t.budget()
	all, err := t.entrants(ctx, f.without)
	if err != nil {
		return err
	}
	if limit > 0 {
		t.end, t.grace = t.began.Add(limit), limit/25
		t.recall(f.engine.devices, limit, all)
	}
	if err := t.compete(ctx, all); err != nil {
		return err
	}
	t.took = time.Since(t.began)
	return f.report(t, model)
}

// check reads the flags that need no file; limit is the time, 0 if the rounds are given.
func (f *recommendFlags) check(t *tournament) (limit time.Duration, err error) {
	if f.images == "" {
		return 0, misuse("recommend needs --images, a folder of photographs")
	}
	var names []string
	for _, m := range metricChoices {
		if names = append(names, m.name); m.name == f.metric {
			t.metric = m
		}
	}
	if t.metric.name == "" {
		return 0, misuse("--metric is one of %s, not %q", strings.Join(names, ", "), f.metric)
	}
	if f.rounds != "" {
		t.schedule, err = parseSchedule(f.rounds)
		return 0, err
	}
	limit, err = time.ParseDuration(f.time)
	if err != nil || limit < time.Second {
		return 0, misuse("--time is a time of at least a second, such as 90s, 2m or 1h, not %q", f.time)
	}
	return limit, nil
}

// entrants returns the candidates that the model takes.
func (t *tournament) entrants(ctx context.Context, without string) ([]candidate, error) {
	all, err := chosen(t.settings(), without)
	if err != nil {
		return nil, err
	}
	all, t.refused, err = t.split(ctx, all)
	if err != nil {
		return nil, err
	}
	if len(all) < 2 {
		return nil, usage(fmt.Errorf("%d candidates are left: there is nothing to compare", len(all)), "")
	}
	return all, nil
}

// recall finds the schedule of an earlier call of the same tournament: it has the same rounds, in less time.
func (t *tournament) recall(devices string, limit time.Duration, all []candidate) {
	text, err := t.text(all, "")
	if err != nil {
		return // play reports it
	}
	t.memo = stages.Sum(fmt.Appendf(text, "\n%s %v %s %d %d %d", devices, limit, t.metric.name,
		t.Folder.Images, t.Model.Bytes, t.Model.MultiplyAdds))
	if b, ok := t.session.store.Memo(t.memo); ok {
		var s schedule
		if json.Unmarshal(b, &s) == nil && len(s.Rounds) > 0 {
			t.schedule = s
			t.u.say("the rounds are those of an earlier call; another --seed or --time has others")
			if s.decided() {
				t.end = time.Time{} // its results are in the store
			}
		}
	}
}

// remember stores what is decided of the schedule. After one for which the time was too short, the
// next call decides anew, and gets further, as it finds the results of this one. So it does if nothing
// can be stored.
func (t *tournament) remember() {
	if t.end.IsZero() || len(t.untried) > 0 {
		return
	}
	if b, err := json.Marshal(t.schedule); err == nil {
		_ = t.session.store.SetMemo(t.memo, b)
	}
}

// compete plays the rounds, and the confirmation.
func (t *tournament) compete(ctx context.Context, all []candidate) error {
	for _, c := range all {
		t.standings = append(t.standings, standing{candidate: c})
	}
	if err := t.calibrate(ctx); err != nil {
		return err
	}
	for k := 0; ; k++ {
		more, err := t.round(ctx, k)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return t.confirm(ctx)
}

// calibrate measures the curves of one image, of the control, and estimates from them what candidates take.
func (t *tournament) calibrate(ctx context.Context) error {
	if t.end.IsZero() || t.schedule.decided() {
		return nil
	}
	g := game{of: []candidate{t.baseline(control)}, images: 1}
	s, _, err := t.play(ctx, g, t.choiceEnds())
	if err != nil {
		return err
	}
	defer s.result.Close()
	if err := t.measure(ctx, s); err != nil {
		return err
	}
	curves := t.prices[control]
	passes := float64(2 * (t.Steps + 1))
	pass := t.pass()
	if curves.image > 0 && !t.metric.Places {
		pass = curves.image / passes
	}
	for _, s := range t.standings {
		t.prices[s.id] = price{pass * (float64(s.cost) + passes), max(curves.loading, compiling)}
	}
	return nil
}

// compiling is the least number of seconds in which a candidate's program is compiled and loaded.
const compiling = 0.1

// chosenOn is the number of images of the last round.
func (t *tournament) chosenOn() int {
	if n := len(t.schedule.Rounds); n > 0 {
		return t.schedule.Rounds[n-1].Images
	}
	return 0
}

// decide returns round k of the schedule, or decides it by the time that is left.
func (t *tournament) decide(k int) (round, bool, error) {
	images := t.Folder.Images / 2
	if k < len(t.schedule.Rounds) {
		r := t.schedule.Rounds[k]
		switch n := len(t.standings); {
		case r.Candidates > n:
			const text = "--rounds: round %d has %d candidates, and there are %d"
			return r, false, misuse(text, k+1, r.Candidates, n)
		case r.Images > images:
			const text = "--rounds: round %d has %d images, and the rounds have half of the %d"
			return r, false, misuse(text, k+1, r.Images, t.Folder.Images)
		}
		return r, true, nil
	}
	if t.schedule.decided() || t.end.IsZero() {
		return round{}, false, nil
	}
	left := time.Until(t.choiceEnds())
	left = time.Duration(float64(left) * reserve / t.slower)
	var prices []price
	for _, s := range t.standings {
		prices = append(prices, t.prices[s.id])
	}
	if k == 0 {
		return first(prices, images, left/time.Duration(roundsLeft(len(prices))), left/2), true, nil
	}
	before := round{len(t.standings), t.schedule.Rounds[k-1].Images}
	r, ok := next(before, prices, images, left)
	return r, ok, nil
}

// choiceEnds is when the rounds have to end.
func (t *tournament) choiceEnds() time.Time {
	if t.end.IsZero() {
		return t.end
	}
	return t.began.Add(time.Duration(choosing * float64(t.end.Sub(t.began))))
}

// round plays round k, from 0, and reports whether there was one.
func (t *tournament) round(ctx context.Context, k int) (bool, error) {
	r, ok, err := t.decide(k)
	if !ok || err != nil {
		return false, err
	}
	var of []candidate
	for _, s := range t.standings[:r.Candidates] {
		of = append(of, s.candidate)
	}
	t.u.say("round %d: %s on %s", k+1, numberOf(len(of), "candidate"), numberOf(r.Images, "image"))
	began := time.Now()
	if k == 0 && len(t.schedule.Rounds) == 0 && !t.end.IsZero() {
		if of, err = t.inGroups(ctx, of, r.Images); err != nil {
			return false, err
		}
		r.Candidates = len(of)
	}
	if len(of) == 0 {
		return false, nil
	}
	s, why, err := t.play(ctx, game{of: of, images: r.Images}, t.choiceEnds())
	if err != nil {
		return false, err
	}
	defer s.result.Close()
	if outOfTime(why) {
		t.u.say("round %d takes too long, and doesn't count", k+1)
		return false, nil
	}
	t.lower = s.lower
	cause := errTime.Error()
	if t.end.IsZero() {
		cause = "the rounds have no place for it"
	}
	for _, out := range t.standings[r.Candidates:] {
		if k == 0 {
			t.untried = append(t.untried, absence{out.id, cause})
		} else {
			t.dropped = append(t.dropped, dropped{out, k})
		}
	}
	t.absent(of, why)
	of = slices.DeleteFunc(of, func(c candidate) bool { return why[c.id] != "" })
	of, same := distinct(of, s.scores)
	t.twins = append(t.twins, same...)
	t.standings = ranked(of, s.scores, s.lower)
	if k == len(t.schedule.Rounds) {
		t.schedule.Rounds = append(t.schedule.Rounds, r)
		t.remember()
	}
	return true, t.compare(ctx, s, began, r)
}

// outOfTime reports whether the time has cut off some candidates.
func outOfTime(why map[string]string) bool {
	for _, reason := range why {
		if reason == errTime.Error() {
			return true
		}
	}
	return false
}

// inGroups plays a first round of candidates whose prices are guesses, a few at once, and returns those
// for which there was time.
func (t *tournament) inGroups(ctx context.Context, of []candidate, images int) ([]candidate, error) {
	const group = 6
	left := time.Until(t.choiceEnds())
	until := time.Now().Add(left * 2 / 3) // the rest is for further rounds
	seconds := func(of []candidate) float64 {
		var prices []price
		for _, c := range of {
			prices = append(prices, t.prices[c.id])
		}
		return total(prices).seconds(images)
	}
	for done := 0; done < len(of); {
		now := of[done:min(len(of), done+group)]
		began := time.Now()
		s, why, err := t.play(ctx, game{of: now, images: images}, until)
		if err != nil {
			return nil, err
		}
		s.result.Close()
		if outOfTime(why) {
			return of[:done], nil
		}
		done += len(now)
		each := time.Since(began).Seconds() / seconds(now)
		ahead := seconds(of[done:min(len(of), done+group)]) * each
		if ahead > time.Until(until).Seconds() {
			return of[:done], nil
		}
	}
	return of, nil
}

// absent notes the candidates that have failed.
func (t *tournament) absent(of []candidate, why map[string]string) {
	for _, c := range of {
		if reason := why[c.id]; reason != "" {
			t.refused = append(t.refused, absence{c.id, reason})
		}
	}
}

// compare notes prices, and by how much the round was slower than these.
func (t *tournament) compare(ctx context.Context, s scored, began time.Time, r round) error {
	if t.end.IsZero() || t.schedule.decided() {
		return nil
	}
	took := time.Since(began).Seconds()
	if err := t.measure(ctx, s); err != nil {
		return err
	}
	before := 0
	if k := len(t.schedule.Rounds); k > 1 {
		before = t.schedule.Rounds[k-2].Images
	}
	var prices []price
	for _, c := range t.standings {
		prices = append(prices, t.prices[c.id])
	}
	if seconds := total(prices).seconds(r.Images - before); seconds > 0 {
		t.slower = min(max(1, took/seconds), 4)
	}
	return nil
}

// indexOf returns the place of a candidate in a list, -1 for none.
func indexOf(list []candidate, id string) int {
	return slices.IndexFunc(list, func(c candidate) bool { return c.id == id })
}

// baseline returns the candidate of a baseline.
func (t *tournament) baseline(id string) candidate {
	all := t.candidates()
	return all[indexOf(all, id)]
}
