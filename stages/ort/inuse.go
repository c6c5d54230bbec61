package ort

import (
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/runexp/runexp/stages"
)

// inUse records the models that this process uses, in a file that is deleted at the end. A crashed process
// leaves its file; so the next process knows which models may be the reason, and runs them in worker
// processes. It doesn't matter whether the earlier process crashed or was killed: the results are the same,
// and a model is forgotten when it has run without another crash.
type inUse struct {
	mu        sync.Mutex // guards the fields below
	dir       string
	build     func() string
	open      bool            // the files of earlier processes have been read
	file      *os.File        // locked as long as this process lives; nil if it can't be made
	left      []string        // files of processes that have ended
	noted     map[string]bool // lines of models in file
	suspects  map[string]bool // lines of models in the files of left
	used, bad map[string]bool // suspects that ran here; suspects whose process ended
}

// Watch has this process record in a folder which models it uses, until [Unwatch]. The string that build
// returns names everything else that decides how a program behaves.
func Watch(dir string, build func() string) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.inUse = newInUse(dir, build)
}

func newInUse(dir string, build func() string) *inUse {
	return &inUse{dir: dir, build: build, noted: map[string]bool{}, suspects: map[string]bool{},
		used: map[string]bool{}, bad: map[string]bool{}}
}

// Unwatch records that this process ended well: no model that it used is a suspect, except those whose
// worker process ended.
func Unwatch() {
	process.mu.Lock()
	u := process.inUse
	process.inUse = nil
	process.mu.Unlock()
	if u != nil {
		u.end()
	}
}

// For returns the runtime for programs of a model. It is a worker process, which Close ends, if an earlier
// process ended while it used the model, or if this process can't record that it uses the model. It is also
// a worker process if sure is false: see [Surely].
func For(model stages.Digest, sure bool) (*Runtime, error) {
	r, err := Default()
	if err != nil {
		return nil, err
	}
	l, err := memoryLimit(0)
	if err != nil {
		return nil, err
	}
	process.mu.Lock()
	u := process.inUse
	process.mu.Unlock()
	switch {
	case u == nil:
		return r.inProcess(l, nil)
	case u.suspect(model):
		return r.inProcess(l, func() { u.ended(model) })
	case !sure:
		return r.inProcess(l, nil)
	}
	return r, nil
}

// suspect records that a model is in use and reports whether it is a suspect, as an earlier process ended
// while it used it.
func (u *inUse) suspect(model stages.Digest) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	line := u.line(model)
	if !u.open {
		u.open = true
		u.read()
		u.create()
	}
	if u.file != nil && !u.noted[line] {
		u.noted[line] = true
		_, _ = u.file.WriteString(line) // if it fails, the next process lacks this suspect
	}
	if u.suspects[line] {
		u.used[line] = true
	}
	return u.suspects[line]
}

// ended records that a worker process ended while it ran a program of the model.
func (u *inUse) ended(model stages.Digest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bad[u.line(model)] = true
}

// line returns the line that stands for a model in a file.
func (u *inUse) line(model stages.Digest) string { return u.build() + " " + model.String() + "\n" }

// read finds the files of processes that have ended, and the suspects in them. Lines of other builds are
// ignored.
func (u *inUse) read() {
	build := u.build() + " "
	entries, _ := os.ReadDir(u.dir) // if there is no folder, there are no files
	for _, e := range entries {
		path, text, ok := abandoned(u.dir, e)
		if !ok {
			continue
		}
		u.left = append(u.left, path)
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, build) {
				u.suspects[line] = true
			}
		}
	}
}

// end leaves a file for the next process: the suspects that weren't tried, and those whose worker process
// ended again.
func (u *inUse) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.file == nil {
		return
	}
	var stay []string
	for line := range u.suspects {
		if !u.used[line] || u.bad[line] {
			stay = append(stay, line)
		}
	}
	slices.Sort(stay)
	rest := strings.Join(stay, "")
	if u.file.Truncate(0) == nil {
		_, _ = u.file.WriteAt([]byte(rest), 0)
	}
	for _, path := range u.left {
		_ = os.Remove(path) // another process may have removed it
	}
	if rest == "" {
		_ = os.Remove(u.file.Name())
	}
	_ = u.file.Close()
}
