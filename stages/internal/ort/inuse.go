package ort

import (
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/runexp/runexp/stages"
)

// inUse records which models this process uses, in a file that exists while it does. A crashed process leaves
// its file; so the next one knows which models may be the reason, and runs their programs in processes of
// their own. Whether the process crashed or was killed doesn't matter: results are the same, and models of
// which no further process ends are forgotten.
type inUse struct {
	mu        sync.Mutex // guards the rest
	dir       string
	build     func() string
	open      bool            // what others left has been read
	file      *os.File        // locked as long as this process lives; nil if there can't be one
	left      []string        // files of processes that are no more
	noted     map[string]bool // lines of models in file
	suspects  map[string]bool // lines of models in these
	used, bad map[string]bool // suspects that ran here; of which a process ended
}

// Watch has this process note in a folder which models it uses, until [Unwatch]. build names all that decides
// what a program does, but for its model.
func Watch(dir string, build func() string) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.inUse = newInUse(dir, build)
}

func newInUse(dir string, build func() string) *inUse {
	return &inUse{dir: dir, build: build, noted: map[string]bool{}, suspects: map[string]bool{},
		used: map[string]bool{}, bad: map[string]bool{}}
}

// Unwatch says that all went well with the models that this process used, but for those of which a process
// ended.
func Unwatch() {
	process.mu.Lock()
	u := process.inUse
	process.inUse = nil
	process.mu.Unlock()
	if u != nil {
		u.end()
	}
}

// For returns the runtime for programs of a model: in a process of its own, which Close ends, if an earlier
// process ended while it used the model, or if this one can't record its use.
//
// So is a program if it isn't sure that what it takes is there: see [Surely].
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

// suspect notes that a model is in use and reports whether it was when another process ended.
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
		_, _ = u.file.WriteString(line) // if it can't, the next process doesn't know it
	}
	if u.suspects[line] {
		u.used[line] = true
	}
	return u.suspects[line]
}

// ended says that a process ended that ran a program of a model.
func (u *inUse) ended(model stages.Digest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bad[u.line(model)] = true
}

// line is what stands in a file for a model.
func (u *inUse) line(model stages.Digest) string { return u.build() + " " + model.String() + "\n" }

// read finds the files of processes that are no more, and the suspects in them. Another build says nothing
// about this one.
func (u *inUse) read() {
	build := u.build() + " "
	entries, _ := os.ReadDir(u.dir) // no folder has no files
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

// end leaves what the next process has to know: the suspects that weren't tried, and those of which a process
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
		_ = os.Remove(path) // another process may have
	}
	if rest == "" {
		_ = os.Remove(u.file.Name())
	}
	_ = u.file.Close()
}
