package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/schedule"
)

func (l *lab) number(n int) {
	l.items = nil
	for i := range n {
		l.items = append(l.items, fmt.Sprintf("i%d=%d", i, i))
	}
}

// Two cells whose bytes aren't kept, read by a third, execute together: each of their items once.
func TestTwoStreamsIntoOne(t *testing.T) {
	const yaml = `
name: streams
stages:
  images: {uses: lab/source}
  left:   {uses: lab/scale, in: {images: images}, with: {by: 2}, store: none}
  right:  {uses: lab/scale, in: {images: images}, with: {by: 3}, store: none}
  both:   {uses: lab/mix, in: {maps: left, more: right}}
  scores: {uses: lab/add, in: {maps: both}}
  total:  {uses: lab/sum, in: {scores: scores}, over: all}
publish: [total]
`
	l := newLab(t)
	l.number(20)
	l.chunk = 3
	res := l.mustRun(yaml)
	l.want("streams", "scale", 40, "mix", 20, "add", 20)
	if got := l.text(res, "total"); !strings.HasPrefix(got, ": 0 5 10 15 20 ") {
		t.Errorf("got %q", got)
	}
	l.mustRun(strings.Replace(yaml, "by: 3", "by: 100", 1))
	l.want("one stream changed", "scale", 40, "mix", 20, "add", 19) // 0 is 0 as before
}

// Each of two cells whose bytes aren't kept is read together with something made from the other, and they
// can't flow together, as their items come from different places: one of them must begin without all its
// readers.
func TestStreamsThatWaitForEachOther(t *testing.T) {
	const yaml = `
name: crossed
stages:
  images: {uses: lab/source}
  others: {uses: lab/other}
  left:   {uses: lab/scale, in: {images: images}, with: {by: 2}, store: none}
  right:  {uses: lab/scale, in: {images: others}, with: {by: 3}, store: none}
  leftsum:  {uses: lab/add, in: {maps: left, images: images}}
  rightsum: {uses: lab/add, in: {maps: right, images: others}}
  crossed:  {uses: lab/pair, in: {maps: left, scores: rightsum}}
  crossed2: {uses: lab/pair, in: {maps: right, scores: leftsum}}
publish: []
`
	l := newLab(t)
	l.number(7)
	l.others = l.items
	res := l.mustRun(yaml)
	if got := l.text(res, "crossed"); !strings.HasPrefix(got, "i0=0 i1=6 i2=12 ") {
		t.Errorf("got %q", got)
	}
	if got := l.text(res, "crossed2"); !strings.HasPrefix(got, "i0=0 i1=6 i2=12 ") {
		t.Errorf("got %q", got)
	}
}

// Of a stream whose bytes aren't kept only what's new flows; what was known but isn't stored is computed
// again a chunk at a time.
func TestStreamOfWhichSomeIsKnown(t *testing.T) {
	const yaml = `
name: partly
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/mix, in: {maps: first}, store: none}
  first:  {uses: lab/scale, in: {images: images}}
  scores: {uses: lab/add, in: {maps: maps}, with: {plus: %d}}
publish: []
`
	l := newLab(t)
	l.number(40)
	l.chunk = 10
	l.mustRun(fmt.Sprintf(yaml, 0))
	l.want("first", "mix", 40, "mix calls", 4, "add", 40)
	l.mustRun(fmt.Sprintf(yaml, 1))
	l.want("another offset", "mix", 40, "mix calls", 4, "add", 40)
	l.number(45)
	res := l.mustRun(fmt.Sprintf(yaml, 1))
	l.want("five more", "mix", 5, "mix calls", 1, "add", 5)
	if got := l.text(res, "scores"); !strings.HasSuffix(got, "i43=87 i44=89 ") {
		t.Errorf("got %q", got)
	}
	l.mustRun(strings.Replace(fmt.Sprintf(yaml, 1), "store: none", "store: keep", 1))
	l.want("kept from now on", "mix", 0, "add", 0)
}

// Bytes of an Expand stage that aren't kept are made again from the items they belong to.
func TestChildrenThatArentKept(t *testing.T) {
	const yaml = `
name: children
stages:
  images:   {uses: lab/source}
  children: {uses: lab/expand, in: {images: images}, store: none}
  maps:     {uses: lab/scale, in: {images: children}, store: none}
  scores:   {uses: lab/add, in: {maps: maps, images: children}}
  sums:     {uses: lab/add, in: {maps: maps, images: images}}
publish: []
`
	l := newLab(t)
	l.number(9)
	l.chunk = 2
	var want string
	for _, y := range []string{yaml, strings.ReplaceAll(yaml, ", store: none", "")} {
		l.dir = scratch(t)
		res := l.mustRun(y)
		got := l.text(res, "scores") + l.text(res, "sums") + l.text(res, "children")
		if want == "" {
			want = got
		} else if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !strings.HasPrefix(want, "i1/0=3000 i2/0=6000 i2/1=6003 i4/0=12000 ") {
		t.Errorf("got %q", want)
	}
}

// What can't be prepared, or fails, in a stream takes nothing else with it.
func TestFailureInAStream(t *testing.T) {
	const yaml = `
name: broken
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/scale, in: {images: images}, store: none}
  bad:    {uses: lab/mix, in: {maps: maps}, with: {fail: %s}, store: none}
  after:  {uses: lab/mix, in: {maps: bad}}
  more:   {uses: lab/add, in: {maps: after}}
  good:   {uses: lab/add, in: {maps: maps}}
publish: []
`
	for _, where := range []string{"facts", "run"} {
		l := newLab(t)
		l.number(5)
		res, err := l.run(fmt.Sprintf(yaml, where))
		if err != nil {
			t.Fatal(err)
		}
		for cell, want := range map[string]schedule.State{"maps": schedule.Done, "good": schedule.Done,
			"bad": schedule.Failed, "after": schedule.Blocked, "more": schedule.Blocked} {
			f, why := ended(t, res, cell)
			if f != want {
				t.Errorf("%s: %s ended as %d (%s), want %d", where, cell, f, why, want)
			}
			if f == schedule.Blocked && why != "it needs bad, which failed" {
				t.Errorf("%s: %s is blocked because %q", where, cell, why)
			}
		}
		l.want(where, "scale", 5, "add", 5)
		res.Close()
	}
}

// A damaged cell is read by work on the only device and by work on host slots, at once, by many: it's
// computed again once, and nobody waits for ever.
func TestDamagedCellThatManyRead(t *testing.T) {
	const yaml = `
name: many
axes:
  k: [%s]
stages:
  images: {uses: lab/source}
  first:  {uses: lab/scale, in: {images: images}}
  maps:   {uses: lab/hostmix, in: {maps: first}}
  device: {uses: lab/mix, matrix: [k], in: {maps: maps}}
  host:   {uses: lab/add, matrix: [k], in: {maps: maps}, with: {plus: "${k}"}}
publish: []
`
	for _, devices := range []string{"cpu:0", "cpu:0,cpu:1,cpu:2"} {
		l := newLab(t)
		l.number(24)
		l.chunk, l.devices = 2, devices
		l.mustRun(fmt.Sprintf(yaml, "0"))
		for _, path := range objects(t, l) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2] ^= 1
			os.Chmod(path, 0o644)
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		res := l.mustRun(fmt.Sprintf(yaml, "0, 1, 2, 3"))
		if n := res.Summary.Restored; n < 1 || n > 3 {
			t.Errorf("%s: %d cells were restored: %q", devices, n, l.said(pipeline.Warning))
		}
		if got := l.text(res, "host[k=3]"); !strings.HasPrefix(got, "i0=3 i1=5 i2=7 ") {
			t.Errorf("%s: got %q", devices, got)
		}
		if len(l.said(pipeline.Warning)) == 0 {
			t.Errorf("%s: nothing was said", devices)
		}
	}
}

// A cell's later chunks begin with the batch that fitted.
func TestBatchThatFittedIsRemembered(t *testing.T) {
	l := newLab(t)
	l.number(12)
	l.chunk = 3
	l.mustRun(`
name: wild
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/wild, in: {images: images}, with: {do: oom}}
publish: []
`)
	if said := l.said(pipeline.Warning); len(said) != 3 {
		t.Errorf("said %q", said)
	}
}

// A long chain of cells is neither deep recursion nor a reason to blame the last but one.
func TestLongChain(t *testing.T) {
	var b strings.Builder
	b.WriteString("name: long\nstages:\n  images: {uses: lab/source, with: {fail: %s}}\n  s0: {uses: " +
		"lab/scale, in: {images: images}}\n")
	const n = 400
	for i := range n {
		fmt.Fprintf(&b, "  s%d: {uses: lab/mix, in: {maps: s%d}, with: {plus: 1}}\n", i+1, i)
	}
	b.WriteString("publish: []\n")
	l := newLab(t)
	l.items = []string{"a=1"}
	res, err := l.run(fmt.Sprintf(b.String(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, why := ended(t, res, fmt.Sprintf("s%d", n)); why != "it needs images, which failed" {
		t.Errorf("the last cell is blocked because %q", why)
	}
	res.Close()
	l.mustRun(fmt.Sprintf(b.String(), `""`))
	l.want("long", "mix", n)
	l.mustRun(fmt.Sprintf(b.String(), `""`))
	l.want("again", "mix", 0, "scale", 0)
}

// A run that is cancelled isn't one that failed, and the next one goes on.
func TestCancelledRun(t *testing.T) {
	l := newLab(t)
	l.number(10)
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	l.ctx = ctx
	cancel(stop)
	res, err := l.run(chain)
	if !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	if res.Summary.Failed+res.Summary.Blocked > 0 {
		t.Errorf("summary %+v", res.Summary)
	}
	res.Close()
	l.ctx = context.Background()
	l.mustRun(chain)
}

func TestFailFast(t *testing.T) {
	var b strings.Builder
	b.WriteString("name: fast\nstages:\n  bad: {uses: lab/source, with: {fail: a}}\n  images: {uses: " +
		"lab/source}\n  s0: {uses: lab/scale, in: {images: images}}\n")
	const n = 300
	for i := range n {
		fmt.Fprintf(&b, "  s%d: {uses: lab/mix, in: {maps: s%d}, with: {plus: 1}}\n", i+1, i)
	}
	b.WriteString("publish: []\n")
	l := newLab(t)
	l.items, l.failFast = []string{"a=1"}, true
	res, err := l.run(b.String())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	if s := res.Summary; s.Failed != 1 || s.Executed > n/2 {
		t.Errorf("summary %+v", s)
	}
	if f, _ := ended(t, res, fmt.Sprintf("s%d", n)); f.Finished() {
		t.Errorf("the last cell ended as %d", f)
	}
}
