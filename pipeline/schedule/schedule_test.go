package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/stages"
)

// cells makes a plan of cells, a line each: name, flags, and after a colon the cells that it reads. Flags are
// whole, device, temporary (its bytes aren't kept), drop, and share (it may share its work).
func cells(t *testing.T, text string) *plan.Plan {
	t.Helper()
	p := &plan.Plan{}
	byName := map[string]*plan.Cell{}
	var shared stages.SharedRun
	for line := range strings.Lines(text) {
		words, reads, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(words)
		if len(fields) == 0 {
			continue
		}
		has := func(flag string) bool { return slices.Contains(fields[1:], flag) }
		def := stages.Def[struct{}]{Name: fields[0], Relation: stages.Each, Device: has("device"),
			Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}}}
		if has("whole") {
			def.Relation = stages.Whole
		}
		if has("share") {
			def.Shared = &shared
		}
		c := &plan.Cell{Index: len(p.Cells),
			Step: &plan.Step{Name: fields[0], Keep: !has("temporary"), Drop: has("drop")}}
		for i, name := range strings.Fields(reads) {
			from := byName[name]
			if from == nil {
				t.Fatalf("%s reads %s, which isn't above it", fields[0], name)
			}
			def.Inputs = append(def.Inputs, stages.Port{Name: fmt.Sprint("in", i), Type: stages.Scores})
			c.Inputs = append(c.Inputs, plan.Input{Edges: []plan.Edge{{From: from}}})
		}
		s := stages.New(def)
		c.Stage = &s
		byName[fields[0]] = c
		p.Cells = append(p.Cells, c)
	}
	return p
}

// A player plays a run: it says what the store has, and does work in the order in which it is handed out.
type player struct {
	t       *testing.T
	p       *plan.Plan
	s       *schedule.Schedule
	stored  string            // names of cells that the store has
	fails   string            // names of cells that fail
	unknown string            // names of cells whose programs have to be compiled
	keys    map[string]string // names of cells by names of others with the same key
	log     []string
}

func play(t *testing.T, text string, set func(*player)) *player {
	t.Helper()
	p := cells(t, text)
	pl := &player{t: t, p: p, s: schedule.New(p.Cells, p.Calls())}
	if set != nil {
		set(pl)
	}
	return pl
}

func in(names string, c *plan.Cell) bool { return slices.Contains(strings.Fields(names), c.Step.Name) }

// settle says of all cells that are due what becomes of them.
func (p *player) settle() {
	for c := p.s.Due(); c != nil; c = p.s.Due() {
		name := c.Step.Name
		switch by := p.s.Blocker(c); {
		case by != nil:
			p.note("%s blocked by %s", name, by.Step.Name)
			p.s.Finished(c, schedule.Blocked)
		case in(p.stored, c):
			p.note("%s cached", name)
			p.s.Finished(c, schedule.Cached)
		case in(p.unknown, c):
			p.unknown = strings.ReplaceAll(p.unknown, name, "")
			p.s.Uncompiled(c)
		default:
			key := name
			if other := p.keys[name]; other != "" {
				key = other
			}
			p.s.Missing(c, stages.Sum([]byte(key)))
		}
	}
}

func (p *player) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

// next takes the next piece of work, and notes it.
func (p *player) next(host, device bool) (schedule.Work, bool) {
	p.settle()
	w, ok := p.s.Next(host, device)
	switch {
	case w.Compile != nil:
		p.note("compile %s", w.Compile.Step.Name)
	case w.Open != nil:
		p.note("job %s", names(w.Open))
	case w.Piece != nil:
		p.note("chunk %s", names(w.Piece))
	}
	return w, ok
}

func names(j *schedule.Job) string {
	var list []string
	for _, c := range j.Cells {
		list = append(list, c.Step.Name)
	}
	return strings.Join(list, "+")
}

// finish ends a job.
func (p *player) finish(j *schedule.Job) {
	for _, c := range j.Cells {
		as := schedule.Done
		switch {
		case in(p.fails, c):
			as = schedule.Failed
		case p.s.Blocker(c) != nil && p.s.Needs(c):
			as = schedule.Blocked
		case p.s.Blocker(c) != nil:
			p.s.Again(c)
			continue
		case in(p.stored, c): // its inputs came out as they were
			as = schedule.Cached
		}
		p.s.Finished(c, as)
	}
	p.stored += " " + strings.ReplaceAll(names(j), "+", " ")
}

// run does one piece of work at a time until none is left.
func (p *player) run() string {
	for {
		w, ok := p.next(true, true)
		if !ok {
			break
		}
		p.s.Returned(w)
		if w.Open != nil {
			p.finish(w.Open)
		}
	}
	if !p.s.Idle() {
		p.t.Error("work is left that was handed out")
	}
	return strings.Join(p.log, ", ")
}

// TestOrder: cells are executed after those that they read, the last of the plan first; what the store has
// isn't executed, and what needs a failed cell is blocked.
func TestOrder(t *testing.T) {
	for _, test := range []struct {
		name, plan    string
		stored, fails string
		unknown, want string
	}{
		{name: "chain", plan: "a\nb: a\nc: b", want: "job a, job b, job c"},
		{name: "depth first", plan: "a\nb\nc: a\nd: b", want: "job b, job d, job a, job c"},
		{name: "cached", plan: "a\nb: a\nc: b", stored: "a b", want: "a cached, b cached, job c"},
		{name: "cut off", plan: "a\nb: a\nc: b", stored: "b c", want: "job a, b cached, c cached"},
		{name: "blocked", plan: "a\nb: a\nc: b\nd", fails: "a",
			want: "job d, job a, b blocked by a, c blocked by b"},
		{name: "dropped", plan: "a\nb\nc drop: a b\nd: c", fails: "b",
			want: "job b, job a, c blocked by b, d blocked by c"}, // an input of which nothing is left
		{name: "compiled first", plan: "a\nb\nc", unknown: "a b",
			want: "compile b, compile a, job c, job b, job a"},
	} {
		got := play(t, test.plan, func(p *player) {
			p.stored, p.fails, p.unknown = test.stored, test.fails, test.unknown
		}).run()
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestTogether: a cell whose bytes aren't kept is executed with the cells that read it, item by item, once
// these read nothing else that is to come.
func TestTogether(t *testing.T) {
	for _, test := range []struct{ name, plan, stored, want string }{
		{"readers", "images\nmaps temporary: images\nscore: images maps\nother: images", "",
			"job images, job maps+score, job other"},
		{"chain", "images\nnoise temporary: images\nmaps temporary: noise\nscore: maps", "images",
			"images cached, job noise+maps+score"},
		{"whole reader", "images\nmaps temporary: images\nmean whole: maps", "images",
			"images cached, job maps, job mean"},
		{"waits for another", "images\nmodel whole\nmaps temporary: images\nscore: maps model", "images",
			"images cached, job model, job maps+score"},
		{"stored reader", "images\nmaps temporary: images\nscore: maps", "images score",
			"images cached, job maps+score"},
		{"two that one reads", "images\na temporary: images\nb temporary: images\nboth: a b", "images",
			"images cached, job a+b+both"},
	} {
		got := play(t, test.plan, func(p *player) { p.stored = test.stored }).run()
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestImpatience: a reader that waits for a cell which the job's own results lead to is left out, so that the
// job begins before others.
func TestImpatience(t *testing.T) {
	got := play(t, `images
		maps temporary: images
		score: maps
		mean whole: score
		late: maps mean
		other: images`, func(p *player) { p.stored = "images" }).run()
	if want := "images cached, job maps+score, job other, job mean, job late"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestPatience: a job waits while another one that is at work leads to one of its readers, and no longer.
func TestPatience(t *testing.T) {
	p := play(t, "images\nmodel whole\nmaps temporary: images\nscore: maps model", nil)
	p.stored, p.fails = "images", "model"
	w, _ := p.next(true, false)
	if w, ok := p.next(true, false); ok {
		t.Errorf("%s doesn't wait for %s", names(w.Open), p.log[len(p.log)-2])
	}
	p.s.Returned(w)
	p.finish(w.Open)
	if got, want := p.run(), "images cached, job model, job maps, score blocked by model"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestTwins: of two cells with one key, one is executed; the other is looked up again, and executed itself if
// the first failed.
func TestTwins(t *testing.T) {
	same := func(p *player) { p.keys = map[string]string{"b": "a", "a": "a"} }
	p := play(t, "a\nb\nc: a b", same)
	w, _ := p.next(true, false)
	if _, ok := p.next(true, false); ok {
		t.Error("both are executed at a time")
	}
	p.s.Returned(w)
	p.finish(w.Open)
	p.stored += " a"
	if got, want := p.run(), "job b, a cached, job c"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	p = play(t, "a\nb", same)
	p.fails = "b"
	if got, want := p.run(), "job b, job a"; got != want {
		t.Errorf("after a failure: %s, want %s", got, want)
	}
}

// TestShared: cells that may share their work and read the same are one job, and wait for one of them whose
// program is being compiled.
func TestShared(t *testing.T) {
	p := play(t, "images\nother\na share: images\nb share: images\nc share: other", nil)
	p.stored, p.unknown = "images other", "b"
	w, _ := p.next(true, false) // compiles b
	q, _ := p.next(true, false) // c, but not a alone
	if _, ok := p.next(true, false); ok {
		t.Error("a is executed without b")
	}
	p.s.Returned(w)
	p.s.Returned(q)
	p.finish(q.Open)
	if got, want := p.run(), "other cached, images cached, compile b, job c, job a+b"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestChunks: chunks that are begun come before new jobs, those of the plan's first job first, and only where
// their kind of slot is free.
func TestChunks(t *testing.T) {
	p := play(t, "a device\nb", nil)
	var jobs []*schedule.Job
	for range 2 {
		w, ok := p.next(true, false)
		if !ok {
			t.Fatal("no job")
		}
		p.s.Returned(w)
		jobs = append(jobs, w.Open)
	}
	if p.s.WantsDevice() {
		t.Error("a device is wanted before a job has begun")
	}
	for _, j := range jobs {
		p.s.Begin(j)
	}
	if !p.s.WantsDevice() {
		t.Error("no device is wanted for a job that has begun")
	}
	for _, free := range []struct {
		host, device bool
		want         string
	}{{true, false, "b"}, {true, true, "a"}, {false, true, "a"}, {false, false, ""}} {
		w, ok := p.s.Next(free.host, free.device)
		got := ""
		if ok {
			got = names(w.Piece)
			p.s.Returned(w)
		}
		if got != free.want {
			t.Errorf("host %t, device %t: %q, want %q", free.host, free.device, got, free.want)
		}
	}
	w, _ := p.s.Next(true, false)
	p.s.AllStarted(w.Piece)
	if w, ok := p.s.Next(true, false); ok {
		t.Errorf("a chunk of %s is started again", names(w.Piece))
	}
}

// TestUnread: the results of a cell need not stay in memory once all that read it have finished.
func TestUnread(t *testing.T) {
	p := play(t, "a\nb: a\nc: a b", nil)
	var got []string
	for range 3 {
		w, _ := p.next(true, false)
		p.s.Returned(w)
		c := w.Open.Cells[0]
		line := c.Step.Name + ":"
		for _, unread := range p.s.Finished(c, schedule.Done) {
			line += " " + unread.Step.Name
		}
		got = append(got, line)
	}
	if want := []string{"a:", "b:", "c: a b c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAgain: a cell of a job that wasn't executed because another one failed is due again if it can do
// without that one, when its other inputs have finished.
func TestAgain(t *testing.T) {
	p := play(t, `images
		a temporary: images
		b temporary: images
		sum drop: a`, nil)
	p.stored, p.fails = "images", "b"
	sum := p.p.Cells[3]
	sum.Inputs[0].Edges = append(sum.Inputs[0].Edges, plan.Edge{From: p.p.Cells[2]}) // one input of two cells
	s := schedule.New(p.p.Cells, p.p.Calls())
	p.s = s
	w, _ := p.next(true, false)
	if got, want := names(w.Open), "a+b+sum"; got != want {
		t.Fatalf("the job is %s, want %s", got, want)
	}
	p.s.Returned(w)
	s.Finished(p.p.Cells[1], schedule.Done)
	s.Finished(p.p.Cells[2], schedule.Failed)
	if s.Needs(sum) {
		t.Fatal("the sum can't do without b, which it drops")
	}
	s.Again(sum)
	if live := s.Live(sum); len(live) != 1 || len(live[0]) != 1 || live[0][0].From.Step.Name != "a" {
		t.Errorf("live edges %v", live)
	}
	if got, want := p.run(), "images cached, job a+b+sum, job sum"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestEveryCellFinishes plays random plans with failures, at random numbers of pieces at a time: every cell
// ends, none is executed before what it reads has finished or is in its job, and none twice.
func TestEveryCellFinishes(t *testing.T) {
	for seed := range 400 {
		r := rand.New(rand.NewPCG(uint64(seed), 30))
		var b strings.Builder
		n := 3 + r.IntN(12)
		for i := range n {
			fmt.Fprintf(&b, "c%d", i)
			for _, flag := range []string{"whole", "device", "temporary", "share", "drop"} {
				if r.IntN(4) == 0 {
					b.WriteString(" " + flag)
				}
			}
			b.WriteString(":")
			for range r.IntN(min(i, 3) + 1) {
				fmt.Fprintf(&b, " c%d", r.IntN(i))
			}
			b.WriteString("\n")
		}
		p := play(t, b.String(), nil)
		for i := range n {
			if r.IntN(6) == 0 {
				p.fails += fmt.Sprintf(" c%d", i)
			}
			if r.IntN(5) == 0 {
				p.unknown += fmt.Sprintf(" c%d ", i)
			}
		}
		executed := map[string]bool{}
		var running []schedule.Work
		for {
			p.settle()
			if w, ok := p.s.Next(true, true); ok {
				running = append(running, w)
				if w.Open != nil {
					p.begin(w.Open, executed)
				}
				if r.IntN(2) == 0 {
					continue
				}
			}
			if len(running) == 0 {
				break
			}
			k := r.IntN(len(running))
			w := running[k]
			running = slices.Delete(running, k, k+1)
			p.s.Returned(w)
			if w.Open != nil {
				p.finish(w.Open)
			}
		}
		for _, c := range p.p.Cells {
			if state := p.s.State(c); !state.Finished() {
				t.Fatalf("seed %d: %s stays in state %d of\n%s", seed, c.Step.Name, state, b.String())
			}
		}
	}
}

// begin checks that the cells of a job may be executed.
func (p *player) begin(j *schedule.Job, executed map[string]bool) {
	p.t.Helper()
	for i, c := range j.Cells {
		for e := range c.Edges() {
			if !p.s.State(e.From).Finished() && !slices.Contains(j.Cells[:i], e.From) {
				p.t.Errorf("%s is executed before %s", c.Step.Name, e.From.Step.Name)
			}
		}
		if executed[c.Step.Name] && !c.Step.Drop {
			p.t.Errorf("%s is executed twice", c.Step.Name)
		}
		executed[c.Step.Name] = true
	}
}
