package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// fold adds to the store what shares left in their parts, and reports whether that was anything.
func (s *session) fold(ctx context.Context, u *ui) (added bool, err error) {
	ctx, stop := untilSignal(ctx)
	defer stop()
	if s.seen != nil { // before parts are removed
		parts, err := s.store.Parts()
		if err != nil {
			return false, environment(err)
		}
		for _, p := range parts {
			s.seen[p.Name] = p
		}
	}
	slow := time.AfterFunc(progressAfter, func() { u.say("adding what shares left…") })
	r, err := s.store.Fold(ctx)
	slow.Stop()
	if n := len(r.Refused); n > 0 {
		u.warn(fmt.Sprintf("parts of shares: refused %d records, such as %s", n, r.Refused[0]))
	}
	if r.Items > 0 {
		u.say("added %d records of items and %s from %d parts of shares", r.Items, size(r.Bytes), r.Parts)
	}
	if errors.Is(err, store.ErrUnwritable) { // which still serves what it has
		u.warn(fmt.Sprintf("what shares left can't be added: %v", err))
		err = nil
	}
	return r.Items > 0, err
}

// progressAfter is how long a fold takes silently.
const progressAfter = 3 * time.Second

// While a wave lacks items that shares may have found, another look is taken at the parts: a file server's
// clients see new files late.
var (
	lookAgainFor   = time.Minute
	lookAgainEvery = 2 * time.Second
)

// lookAgain closes the wave again when parts appear, while r lacks what may be in parts that aren't visible
// yet. A signal ends the look, and what is missing is told: a job of less time than that would never end.
func (s *session) lookAgain(ctx context.Context, u *ui, r *pipeline.Result, o *plan.Overrides,
	execute func() (*pipeline.Result, error)) (*pipeline.Result, error) {
	for end := time.Now().Add(lookAgainFor); ; {
		lack, err := s.lackOf(r, o)
		if err != nil || !lack.hopeful {
			return r, err
		}
		for found := false; !found; {
			if time.Now().After(end) {
				lack.remember(s.store)
				return r, nil
			}
			select {
			case <-draining(ctx):
				return r, nil
			case <-time.After(min(lookAgainEvery, time.Until(end))):
			}
			if found, err = s.fold(ctx, u); err != nil {
				return r, err
			}
		}
		r.Close()
		if r, err = execute(); err != nil {
			return r, err
		}
	}
}

// A lack is what a closing found missing, and the parts that it saw.
type lack struct {
	Missing stages.Digest
	Parts   []string

	key     stages.Digest // of the memo
	hopeful bool          // an invisible part may have what is missing
}

// lackOf tells what r lacks that shares may have found. There is no hope if all shares are known to have
// ended, or if an earlier closing that lacked the same and saw the same parts looked again in vain.
func (s *session) lackOf(r *pipeline.Result, o *plan.Overrides) (l lack, err error) {
	missing := slices.DeleteFunc(r.Lacks(), func(l pipeline.Lack) bool { return l.New })
	if len(missing) == 0 {
		return l, nil
	}
	file, err := filepath.Abs(r.Plan.File)
	if err != nil {
		return l, environment(err)
	}
	l.Parts = slices.Collect(maps.Keys(s.seen))
	l.Missing = stages.Sum(fmt.Append(nil, missing))
	l.key = stages.Sum([]byte(strings.Join([]string{"closing", resolved(file), settings(o)}, "\x00")))
	var before lack
	if b, ok := s.store.Memo(l.key); ok {
		_ = json.Unmarshal(b, &before) // without it another look is taken
	}
	news := func(part string) bool { return !slices.Contains(before.Parts, part) }
	vain := before.Missing == l.Missing && !slices.ContainsFunc(l.Parts, news)
	if l.hopeful = !vain && !allEnded(s.seen, r.Plan.Name); !l.hopeful {
		l.remember(s.store)
	}
	return l, nil
}

func (l *lack) remember(s *store.Store) {
	if b, err := json.Marshal(l); err == nil {
		_ = s.SetMemo(l.key, b) // without it the next closing looks again
	}
}

// allEnded reports whether there are ended parts of all shares of the experiment: as many as its newest part
// is of.
func allEnded(seen map[string]store.PartInfo, experiment string) bool {
	parts := slices.DeleteFunc(slices.Collect(maps.Values(seen)), func(p store.PartInfo) bool {
		return p.Note == nil || p.Note.Experiment != experiment
	})
	if len(parts) == 0 {
		return false
	}
	newest := slices.MinFunc(parts, func(a, b store.PartInfo) int { return cmp.Compare(a.Age, b.Age) })
	ended := map[int]bool{}
	for _, p := range parts {
		if p.End != nil && p.Shares == newest.Shares {
			ended[p.Share] = true
		}
	}
	return len(ended) == newest.Shares
}
