package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/pipeline/store"
)

// everything has cells of all relations, of stages that share work, are seeded or show names, whose bytes are
// kept or not; two data sets; and Whole stages between items, so that there are three waves.
const everything = `
name: everything
seed: 3
axes:
  draw: [a, b]
  by: [2, 3]
stages:
  images:   {uses: lab/source}
  others:   {uses: lab/other}
  children: {uses: lab/expand, in: {images: images}}
  tags:     {uses: lab/tag, in: {images: children}}
  maps:     {uses: lab/scale, matrix: [by], in: {images: images}, with: {by: "${by}"}}
  scores:   {uses: lab/add, in: {maps: maps, images: images}}
  childmaps: {uses: lab/scale, in: {images: children}, with: {by: 17}}
  joined:   {uses: lab/add, in: {maps: childmaps, images: images}}
  draws:    {uses: lab/draw, matrix: [draw], in: {images: images}, with: {draw: "${draw}"}, store: none}
  drawmaps: {uses: lab/scale, in: {images: draws}, with: {by: 5}, store: none}
  fold:     {uses: lab/fold, in: {maps: drawmaps, original: images}, over: [draw]}
  shared:   {uses: lab/shared, matrix: [by], in: {images: images}, with: {by: "${by}"}}
  notes:    {uses: lab/sourced, in: {images: others}}
  model:    {uses: lab/value, with: {text: net}}
  wild:     {uses: lab/wild, in: {images: images, model: model}}
  few:      {uses: lab/picker, in: {images: children}}
  fewmaps:  {uses: lab/scale, in: {images: few}, with: {by: 7}}
  fewsums:  {uses: lab/add, in: {maps: fewmaps, images: images}}
  fewdraws: {uses: lab/draw, in: {images: few}, with: {draw: c}}
  fewer:    {uses: lab/picker, in: {images: fewdraws}}
  fewest:   {uses: lab/scale, in: {images: fewer}, with: {by: 11}}
  last:     {uses: lab/add, in: {maps: fewest}}
  pairs:    {uses: lab/pairs, in: {left: children, right: others}}
  a: {uses: lab/sum, in: {scores: scores}, over: all}
  b: {uses: lab/sum, in: {scores: joined}, over: all}
  c: {uses: lab/sum, in: {scores: fold}, over: all}
  d: {uses: lab/sum, in: {scores: shared, maps: wild}, over: all}
  e: {uses: lab/sum, in: {scores: notes}, over: all}
  f: {uses: lab/sum, in: {scores: fewsums}, over: all}
  g: {uses: lab/sum, in: {scores: last}, over: all}
publish: [a, b, c, d, e, f, g, pairs]
`

// sharingLab returns a lab for everything.
func sharingLab(t *testing.T, items int) *lab {
	l := newLab(t)
	s := l.picker()
	l.stages[s.Name] = &s
	l.number(items)
	for i := range (items + 1) / 2 {
		l.others = append(l.others, fmt.Sprintf("i%d=%d", 2*i, 20+i))
	}
	return l
}

// on runs an experiment with the settings of an engine on a store, which it closes.
func (l *lab) on(s *store.Store, yaml string, set func(*pipeline.Engine)) (*pipeline.Result, error) {
	p := l.parse(yaml)
	e := l.engine(p, s)
	e.OnEvent = nil // several run at once
	set(e)
	ctx, cancel := context.WithTimeoutCause(l.ctx, time.Minute, errors.New("the run got stuck"))
	defer cancel()
	res, err := e.Run(ctx, p, l.drain)
	if res != nil {
		l.t.Cleanup(res.Close)
	}
	return res, errors.Join(err, s.Close())
}

func (l *lab) share(yaml string, k, of int) (*pipeline.Result, error) {
	s, end, err := store.OpenShare(l.storeDir(),
		store.ShareName{Share: k, Shares: of, Experiment: "everything"},
		store.Options{})
	if err != nil {
		return nil, err
	}
	end(store.ShareOK)
	return l.on(s, yaml, func(e *pipeline.Engine) { e.Share = &resolve.Share{K: k, Of: of} })
}

// merged returns the store with what shares found.
func (l *lab) merged() *store.Store {
	l.t.Helper()
	s, err := store.Open(l.storeDir(), store.Options{})
	if err == nil {
		_, err = s.MergeShares(context.Background())
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

func (l *lab) storeDir() string { return filepath.Join(l.dir, "store") }

func (l *lab) close(yaml string) *pipeline.Result {
	l.t.Helper()
	res, err := l.on(l.merged(), yaml, func(e *pipeline.Engine) { e.Closing = true })
	if err != nil {
		l.t.Fatal(err)
	}
	return res
}

// review publishes and returns the files of the folder.
func (l *lab) review(res *pipeline.Result) map[string]string {
	l.t.Helper()
	dir := filepath.Join(l.t.TempDir(), "review")
	if _, _, err := results.Publish(context.Background(), res, dir, "run", publish.Options{}); err != nil {
		l.t.Fatal(err)
	}
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var b []byte
			b, err = os.ReadFile(filepath.Join(dir, path))
			files[path] = string(b)
		}
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return files
}

// counts are the items that stages executed, but for what every share makes for itself.
func (l *lab) counts() map[string]int {
	m := maps.Clone(l.ran)
	for _, not := range []string{"compiled", "threads", "value", "mix calls"} {
		delete(m, not)
	}
	return m
}

// waves is how many waves everything has.
const waves = 3

// TestShares holds that all shares in any order, wave by wave, make the review folder of one run byte by
// byte, and execute every item once.
func TestShares(t *testing.T) {
	for _, items := range []int{2, 9} {
		one := sharingLab(t, items)
		want := one.review(one.mustRun(everything))
		counts := one.counts()
		for _, of := range []int{1, 3, 7, 20} {
			for _, how := range []string{"in turn", "at once", "again"} {
				t.Run(fmt.Sprintf("%d items in %d shares %s", items, of, how), func(t *testing.T) {
					l := sharingLab(t, items)
					for wave := range waves {
						l.wave(everything, of, how)
						res := l.close(everything)
						if wave < waves-1 {
							checkNext(t, res)
							continue
						}
						if res.Summary.Postponed+res.Summary.Failed+res.Summary.Blocked > 0 {
							t.Fatalf("closing all waves leaves %v, %v", res.Summary, res.Lacks())
						}
						if diff := cmp.Diff(want, l.review(res)); diff != "" {
							t.Errorf("the folder differs: %s", diff)
						}
					}
					if diff := cmp.Diff(counts, l.counts()); diff != "" {
						t.Errorf("shares executed otherwise (-one run, +shares): %s", diff)
					}
					l.mustRun(everything)
					if len(l.ran) > 0 {
						t.Errorf("a run afterwards executed %v", l.ran)
					}
				})
			}
		}
	}
}

// wave runs all shares.
func (l *lab) wave(yaml string, of int, how string) {
	l.t.Helper()
	var ks []int
	for k := range of {
		ks = append(ks, k)
	}
	rand.New(rand.NewPCG(1, uint64(of))).Shuffle(of, func(i, j int) { ks[i], ks[j] = ks[j], ks[i] })
	if how == "again" {
		ks = append(ks, ks[:(of+1)/2]...)
	}
	run := func(k int) {
		res, err := l.share(yaml, k, of)
		if err != nil || res.Summary.Failed+res.Summary.Blocked > 0 {
			l.t.Errorf("share %d of %d: %v, %v", k, of, res.Summary, err)
		}
	}
	var wait sync.WaitGroup
	for _, k := range ks {
		if how == "at once" {
			wait.Go(func() { run(k) })
		} else {
			run(k)
		}
	}
	wait.Wait()
}

// checkNext holds that nothing is missing but what the run itself made possible.
func checkNext(t *testing.T, res *pipeline.Result) {
	t.Helper()
	lacks := res.Lacks()
	if len(lacks) == 0 || slices.ContainsFunc(lacks, func(l pipeline.Lack) bool { return !l.New }) {
		t.Errorf("after closing a wave %+v is missing", lacks)
	}
}

// TestSharesStopped holds that a share that is drained, cancelled or fails leaves what it has, that closing
// says what is missing, and that the share goes on.
func TestSharesStopped(t *testing.T) {
	one := sharingLab(t, 9)
	want := one.review(one.mustRun(everything))
	counts := one.counts()
	for after := 1; after < 40; after += 5 {
		l := sharingLab(t, 9)
		l.chunk = 1
		ctx, cancel := context.WithCancel(context.Background())
		left := after
		l.ctx, l.folding = ctx, func() {
			if left--; left == 0 {
				cancel()
			}
		}
		for k := range 3 {
			if _, err := l.share(everything, k, 3); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		l.ctx, l.folding = context.Background(), nil
		if left <= 0 {
			res := l.close(everything)
			lacks := res.Lacks()
			if !slices.ContainsFunc(lacks, func(l pipeline.Lack) bool { return !l.New && l.Items > 0 }) {
				t.Errorf("stopped after %d, closing finds missing: %+v", after, lacks)
			}
		}
		for range waves {
			l.wave(everything, 3, "in turn")
			l.close(everything)
		}
		res := l.close(everything)
		if diff := cmp.Diff(want, l.review(res)); diff != "" {
			t.Errorf("stopped after %d, the folder differs: %s", after, diff)
		}
		for stage, n := range l.counts() { // a chunk of one item is lost, in one fused job
			if n > counts[stage]+2*len("ab") {
				t.Errorf("stopped after %d: %s executed %d items, one run %d", after, stage, n, counts[stage])
			}
		}
	}
	l := sharingLab(t, 9)
	drain := make(chan struct{})
	close(drain)
	l.drain = drain
	if _, err := l.share(everything, 0, 3); !errors.Is(err, pipeline.ErrDrained) {
		t.Errorf("a drained share: %v", err)
	}
	// A plain run goes on from whatever is there.
	l.drain = nil
	l.wave(everything, 3, "in turn")
	if err := l.merged().Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, l.review(l.mustRun(everything))); diff != "" {
		t.Errorf("a plain run after shares differs: %s", diff)
	}
	if got := l.ran["scale"]; got >= counts["scale"] {
		t.Errorf("a plain run after a wave of shares executed %d of %d maps", got, counts["scale"])
	}
}

// TestSharesTellSpeeds holds that estimates know what shares took.
func TestSharesTellSpeeds(t *testing.T) {
	l := sharingLab(t, 9)
	l.wave(everything, 4, "in turn")
	s := l.merged()
	defer s.Close()
	p := l.parse(everything)
	o, err := l.engine(p, s).Plan(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range p.Steps {
		if step.Name == "maps" || step.Name == "scores" {
			if e := o.Estimate(step); e.Unknown > 0 || e.Seconds <= 0 {
				t.Errorf("%s: %+v", step.Name, e)
			}
		}
	}
}

// TestShareFails holds that an item that fails costs its cells in its share, and is missing at the end.
func TestShareFails(t *testing.T) {
	l := sharingLab(t, 9)
	yaml := strings.Replace(everything, "images:   {uses: lab/source}",
		"images:   {uses: lab/source, with: {fail: i4}}", 1)
	failed := 0
	for k := range 3 {
		res, err := l.share(yaml, k, 3)
		if err != nil {
			t.Fatal(err)
		}
		if res.Summary.Failed > 0 {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d shares have an item that fails, want one", failed)
	}
	res := l.close(yaml)
	lacks := res.Lacks()
	if len(lacks) == 0 || lacks[0].Cell != "images" || lacks[0].New {
		t.Errorf("missing: %+v", lacks)
	}
	// A run of everything tells the failure itself, as if there had been no shares.
	plain, err := l.run(yaml)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if f, why := ended(t, plain, "images"); f != schedule.Failed || why != `item "i4" is broken` {
		t.Errorf("got %v, %s", f, why)
	}
}

// TestSharesDrop holds that shares drop what a run of everything would, items and failed cells.
func TestSharesDrop(t *testing.T) {
	const yaml = `
name: drop
axes:
  set: {first: {uses: lab/source}, second: {uses: lab/other}}
stages:
  images: {uses: lab/source}
  sets:   {uses: "${set}", matrix: [set]}
  maps:   {uses: lab/scale, in: {images: sets.images}}
  fold:   {uses: lab/fold, in: {maps: maps}, over: [set], missing: drop}
  total:  {uses: lab/sum, in: {scores: fold}, over: all}
publish: [total]
`
	one := sharingLab(t, 9)
	want := one.review(one.mustRun(yaml))
	l := sharingLab(t, 9)
	l.wave(yaml, 4, "in turn")
	if diff := cmp.Diff(want, l.review(l.close(yaml))); diff != "" {
		t.Errorf("the folder differs: %s", diff)
	}
	if diff := cmp.Diff(one.counts(), l.counts()); diff != "" {
		t.Errorf("shares executed otherwise: %s", diff)
	}
}

// TestSharesOverlap holds that shares of different numbers, and a limit, add up.
func TestSharesOverlap(t *testing.T) {
	one := sharingLab(t, 9)
	want := one.review(one.mustRun(everything))
	l := sharingLab(t, 5)
	l.wave(everything, 2, "in turn")
	l.close(everything)
	full := sharingLab(t, 9)
	l.items, l.others = full.items, full.others
	for wave := range waves {
		l.wave(everything, 3+wave, "in turn")
		l.close(everything)
	}
	l.wave(everything, 2, "in turn")
	if diff := cmp.Diff(want, l.review(l.close(everything))); diff != "" {
		t.Errorf("the folder differs: %s", diff)
	}
	l.ran = map[string]int{}
	l.wave(everything, 5, "in turn")
	if len(l.ran) > 0 {
		t.Errorf("shares of a complete experiment executed %v", l.ran)
	}
}

// TestShareOwns holds that each origin is one share's, and that shares are of about one size whatever the
// names.
func TestShareOwns(t *testing.T) {
	for _, format := range []string{"%d", "a-%06d", "ILSVRC2012_val_%08d", "n0%d/x"} {
		const of, n = 16, 8000
		var count [of]int
		for i := range n {
			owners := 0
			for k := range of {
				if (resolve.Share{K: k, Of: of}).Owns(fmt.Sprintf(format, i)) {
					owners++
					count[k]++
				}
			}
			if owners != 1 {
				t.Fatalf("%d shares own an origin", owners)
			}
		}
		if least, most := slices.Min(count[:]), slices.Max(count[:]); least < n/of*8/10 || most > n/of*12/10 {
			t.Errorf(format+": shares have from %d to %d origins of %d", 1, least, most, n)
		}
	}
}
