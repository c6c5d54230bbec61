// Package publish keeps review folders: the small, stable text and figures of an experiment that people
// read in a pull request. Data passes from a run's results to the folder in three steps:
//
//   - Model: results.go has what a run publishes. folder.go has the content of a folder, as it is read from
//     the files on disk (dir.go, and the read function of each render_*.go).
//   - Merge: merge.go pairs the entries of each finished cell with those that are published. It does so for
//     the lines of cells (cells.go), the scores of items (items.go), the rows of tables (tables.go),
//     figures (pictures.go) and texts (passages.go), which compare numbers by number.go. verdict.go sums
//     up.
//   - Render: render.go lists the renderers. Each writes one kind of file from the merged folder:
//     render_cells.go, render_experiment.go, render_figures.go, render_folder.go, render_items.go,
//     render_latex.go, render_readme.go, render_tables.go. README.md opens with the answer (answer.go) and
//     says what isn't of a whole, finished run, and what of signed maps the scores read (notes.go);
//     readme.md.tmpl is its form. writer.go updates the folder.
//
// A folder is also read for other readers than a run: revision.go reads one from a git revision, content.go
// returns its content for pages and appendices, and [Diff] compares two (diff.go; their ranks,
// diff_ranks.go), as text that begins with a sentence (diff_text.go) and as data (diff_json.go).
//
// A folder is rewritten by definition and compared by value. Only the lines in cells/ have definitions, one
// a cell, so that rows of other files change only when their values do.
//
//   - An entry (a row, figure or text) on disk is current if its cell has the same definition in cells/ as
//     in the run. It stays as it is: the run reproduces it, or it differs.
//   - An entry of another definition, or one that can't be read, is rewritten.
//   - Entries of a cell that the experiment no longer has are removed, unless something failed.
//
// README.md is written from what ends up in the folder, never from a run's own slightly different numbers,
// so that a colleague on another processor sees no change. It is for people: no program reads it.
package publish

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// budget is how many bytes a review folder may have. Files of items that exceed it stay in the store.
const budget = 2 << 20

// Options say how to write a review folder.
type Options struct {
	// Accept rewrites all entries of the cells that differ.
	Accept bool

	wrap func(fileSystem) fileSystem // lets tests intercept the calls that change the folder
}

// Write updates the review folder dir to r and returns how the two compare. Entries that differ stay, unless
// o.Accept is set. Only files whose bytes change are written, each to a temporary file that is then renamed:
// a call that was interrupted at any moment, and is repeated, leaves the same folder.
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
	folder  *Folder           // after the update
	files   map[string][]byte // of that folder
	stale   []string          // names of files to remove
	verdict Verdict
}

// compare compares a folder's files with a run's results. What the cells in forced have on disk is rewritten.
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
			continue // a file of other people stays
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
