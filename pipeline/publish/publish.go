// Package publish keeps review folders: the small, stable text and pictures of an experiment that people read
// in a pull request. Data goes through three seams:
//
//   - The model: a run's results (review.go) and the files on disk (dir.go, and the read function of each
//     render_*.go) become values of the same types (folder.go).
//   - Merge: what a finished cell has in a file is paired with what is published there by one mechanism
//     (merge.go), which lines, items, tables, pictures and texts use (cells.go, items.go, tables.go,
//     pictures.go, passages.go, with the comparisons of number.go). It adds up to the verdict (verdict.go).
//   - Render: each renderer of the list in render.go writes one kind of file from the merged model alone, and
//     nothing else knows it; readme.md.tmpl is the form of README.md. writer.go updates the folder.
//
// [Diff] pairs and compares two folders by the same mechanism (diff.go) and writes what it finds as text
// (diff_text.go).
//
// A folder is rewritten by definition and compared by value. Definitions stand in cells/ alone, one a cell,
// so that rows of the other files change only when their values do.
//
//   - A claim is a row, figure or text on disk of a cell that has the same definition in cells/ as in the
//     run. It stays as it is, and the run reproduces it, or not: then it differs.
//   - Whatever is of another definition, or can't be read, is rewritten exactly.
//   - What belongs to no cell any more is removed, unless something failed.
//
// README.md is made from what ends up in the folder, never from a run's own slightly different numbers, so a
// colleague on another processor sees no change.
package publish

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// budget is how many bytes a review folder may have: what exceeds it stays in the store.
const budget = 2 << 20

// Options tell how to write a review folder.
type Options struct {
	// Accept rewrites the cells that differ: all their rows, figures and texts.
	Accept bool

	wrap func(fileSystem) fileSystem // for tests: of the calls that change the folder
}

// Write updates the review folder dir to r and returns how the two compare. It writes only files
// whose bytes change, each to a temporary file which is then renamed: interrupted at any moment and called
// again, it leaves the same folder. Claims that differ stay, unless o.Accept is set.
func Write(dir string, r *Results, o Options) (Verdict, error) {
	if err := Check(dir); err != nil {
		return Verdict{}, err
	}
	files, err := readFolder(dir, isComplete)
	if err != nil {
		return Verdict{}, err
	}
	c, err := compare(files, r, nil)
	if err != nil {
		return Verdict{}, err
	}
	if o.Accept && !c.verdict.OK() {
		differing := map[string]bool{}
		for _, row := range c.verdict.Of(Differs) {
			differing[row.Cell] = true
		}
		if c, err = compare(files, r, differing); err != nil {
			return Verdict{}, err
		}
	}
	return c.verdict, c.write(dir, o.wrap)
}

// Verify compares the review folder dir with r as [Write] does, and writes nothing.
func Verify(dir string, r *Results) (Verdict, error) {
	files, err := readFolder(dir, isComplete)
	if err != nil {
		return Verdict{}, err
	}
	c, err := compare(files, r, nil)
	if err != nil {
		return Verdict{}, err
	}
	c.verdict.verified = true
	return c.verdict, nil
}

// A change is the update of a folder.
type change struct {
	folder  *Folder           // as it shall be
	files   map[string][]byte // of it
	stale   []string          // files to remove
	verdict Verdict
}

// compare compares a folder's files with a review. The cells in forced have no claims, whatever their
// definitions.
func compare(files map[string][]byte, r *Results, forced map[string]bool) (*change, error) {
	disk := readFiles(files)
	m, err := mergeFolder(disk, r, forced)
	if err != nil {
		return nil, err
	}
	m.fitItems()
	c := &change{folder: m.out, files: render(m.out)}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, ok := c.files[name]; ok || !strings.Contains(name, "/") || !disk.ours[name] {
			continue // other people's files are left alone
		}
		if m.partial() {
			m.report(name, "").add(Kept, Row{})
			m.out.Kept = append(m.out.Kept, name)
		} else {
			m.report(name, "").add(Removed, Row{})
			c.stale = append(c.stale, name)
		}
	}
	if len(m.out.Kept) > 0 {
		c.files = render(m.out)
	}
	c.verdict = m.verdict()
	c.verdict.Answer = m.out.Answer()
	size := 0
	c.verdict.Changed = slices.Clone(c.stale)
	for name, b := range c.files {
		size += len(b)
		if old, ok := files[name]; !ok || string(old) != string(b) {
			c.verdict.Changed = append(c.verdict.Changed, name)
		}
	}
	slices.Sort(c.verdict.Changed)
	for _, name := range m.out.Kept {
		size += len(files[name])
	}
	if size > budget {
		warning := fmt.Sprintf("the review folder has %.1f MB, more than the %d MB that people like to find "+
			"in a repository; publish fewer or smaller figures", float64(size)/(1<<20), budget>>20)
		c.verdict.Warnings = []string{warning}
	}
	return c, nil
}
