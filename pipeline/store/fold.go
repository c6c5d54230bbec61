package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/runexp/runexp/stages"
)

// A FoldReport tells what a fold added.
type FoldReport struct {
	MergeReport
	Parts   int // that were there
	Removed int // of them: all they hold was in the store already
}

// partInUse is how long a part without an end may wait for its next record. A share that is silent for longer
// is believed to be lost.
const partInUse = 24 * time.Hour

// Fold adds what the parts hold, checked as Merge checks it, and hands it to the disk. Unlike Merge it takes
// memos: those of this store's own shares. It removes a part only if all of it is here already and nothing
// will be added to it: so what one fold added, another one has found there. It may be called by two machines
// at once, and again after any interruption.
func (s *Store) Fold(ctx context.Context) (r FoldReport, err error) {
	if s.opts.ReadOnly {
		return r, errReadOnly
	}
	if errors.Is(s.realFolder(s.partsDir()), fs.ErrNotExist) {
		return r, nil
	}
	now, err := s.diskTime()
	if err != nil {
		return r, err
	}
	files, err := s.partFiles()
	if err != nil {
		return r, err
	}
	r.Parts = len(files)
	unbriefed := map[string]bool{} // experiments whose briefs, which don't tell what was added, are removed
	r.MergeReport, err = s.mergeParts(ctx, files, func(p *mergedPart) error {
		for key, val := range p.memos {
			if err := s.SetMemo(key, val); err != nil {
				return err
			}
		}
		goes := !p.added && len(p.Refused) == 0 && !p.info(now).InUse() && !p.changed()
		if (p.added || goes) && p.head != nil && !unbriefed[p.head.Experiment] {
			unbriefed[p.head.Experiment] = true
			if err := s.WriteBrief(p.head.Experiment, nil, nil); err != nil {
				return err
			}
		}
		if !goes {
			return nil
		}
		if err := s.remove(p.path); err != nil {
			return err
		}
		r.Removed++
		return nil
	})
	return r, err
}

// MergeParts is Merge for a part, or a folder of parts, which stay. found is false if path is neither.
func (s *Store) MergeParts(ctx context.Context, path string) (r MergeReport, found bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return r, false, err
	}
	open := func(path string) func() (*os.File, error) {
		return func() (*os.File, error) { return stages.OpenFile(path) }
	}
	var files []partFile
	if info.Mode().IsRegular() {
		files = append(files, partFile{name: filepath.Base(path), path: path, open: open(path)})
	} else if entries, err := os.ReadDir(path); err == nil {
		for _, e := range entries {
			if f, ok := partNamed(e.Name()); ok && e.Type().IsRegular() {
				f.path = filepath.Join(path, f.name)
				f.open = open(f.path)
				files = append(files, f)
			}
		}
	}
	if s.opts.ReadOnly {
		return r, len(files) > 0, errReadOnly
	}
	r, err = s.mergeParts(ctx, files, func(*mergedPart) error { return nil })
	return r, len(files) > 0, err
}

// A mergedPart is a part that is being merged.
type mergedPart struct {
	*merging
	*journal
	partFile
	state  fs.FileInfo     // when it was read
	groups []stages.Digest // sorted: those that are left
}

// mergeParts adds parts to the store, and calls done for each when the disk has them.
func (s *Store) mergeParts(ctx context.Context, files []partFile, done func(*mergedPart) error) (
	r MergeReport, err error) {
	for len(files) > 0 && err == nil {
		files, err = s.mergeBatch(ctx, files, &r, done)
	}
	return r, err
}

// batchFrames is about how many frames of parts a fold has in memory at once, some 60 bytes each, so that it
// takes as much for any number of images. Tests change it.
var batchFrames = 4 << 20

// mergeBatch is mergeParts for the first files, about as many as may be open at once and as memory holds, and
// returns the others. Each log is read once for them.
func (s *Store) mergeBatch(ctx context.Context, files []partFile, r *MergeReport,
	done func(*mergedPart) error) (others []partFile, err error) {
	var parts []*mergedPart
	var journals []*journal
	open := func(p ObjectRef) (objectBytes, error) { return openObjectIn(journals, p) }
	join := newJoining(s, open)
	defer func() {
		r.add(MergeReport{Objects: join.objects, Bytes: join.bytes})
		for _, p := range parts {
			r.add(p.MergeReport)
			p.close()
		}
	}()
	frames := 0
	for n, f := range files {
		full := n >= s.maxLogs || frames >= batchFrames
		if full && (f.share != files[n-1].share || f.shares != files[n-1].shares) {
			others = files[n:]
			break // a later attempt's records may refer to objects of an earlier one
		}
		j, state, err := f.read()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another fold has removed it
		}
		m := &merging{s: s, ctx: ctx, open: open, objects: map[ObjectRef]error{}, join: join}
		if err != nil {
			m.refuse(f.name, "%v", err)
			r.add(m.MergeReport)
			continue
		}
		if j.altered {
			m.refuse(f.name, "not a part, or damaged, from byte %d on", j.end)
		}
		groups := slices.SortedFunc(maps.Keys(j.groups), func(a, b stages.Digest) int {
			return slices.Compare(a[:], b[:])
		})
		journals = append(journals, j)
		frames += j.frames
		parts = append(parts, &mergedPart{m, j, f, state, groups})
	}
	for bucket := range buckets {
		if err := s.mergeBucket(parts, s.log(itemFrame, stages.Digest{byte(bucket)})); err != nil {
			return nil, err
		}
		clear(join.moved)
	}
	if err := join.flush(); err != nil {
		return nil, err
	}
	if err := s.settle(parts, join.folders); err != nil {
		return nil, err
	}
	for _, p := range parts {
		if err := done(p); err != nil {
			return nil, err
		}
	}
	return others, nil
}

// mergeBucket adds the records that belong in one log.
func (s *Store) mergeBucket(parts []*mergedPart, file logFile) error {
	groups := map[stages.Digest]bool{}
	for _, p := range parts {
		for _, g := range p.groups {
			if g[0] != file.bucket {
				break
			}
			groups[g] = true
		}
	}
	if len(groups) == 0 {
		return nil
	}
	known, err := s.knownFrames(file, func(group stages.Digest) bool { return groups[group] })
	if err != nil {
		return err
	}
	for _, p := range parts {
		for ; len(p.groups) > 0 && p.groups[0][0] == file.bucket; p.groups = p.groups[1:] {
			group := p.groups[0]
			_, err := p.eachItemFrame(group, 0, func(off int64, payload []byte) error {
				return p.outcomes(p.partFile.name, file, off, group, payload, known)
			})
			if m, ok := errors.AsType[*Miss](err); ok {
				p.refuse(p.partFile.name, "%v", m)
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// settle hands to the disk what is here of the parts: objects were before they got their names in folders.
func (s *Store) settle(parts []*mergedPart, folders map[string]bool) error {
	if len(parts) == 0 {
		return nil
	}
	for dir := range folders {
		if err := s.syncFolder(dir); err != nil {
			return err
		}
	}
	return s.syncStore()
}

// changed reports whether the file isn't what was read.
func (p *mergedPart) changed() bool {
	now, err := p.journal.file.Stat()
	at, e := p.s.lstat(p.path, fs.FileMode.IsRegular)
	return err != nil || e != nil || !os.SameFile(now, at) || now.Size() != p.state.Size() ||
		!now.ModTime().Equal(p.state.ModTime())
}

// A partFile is a file that is named like a part.
type partFile struct {
	name, path    string
	share, shares int
	open          func() (*os.File, error)
}

// partPattern makes the name of a part of the share, the number of shares and a random number.
const partPattern = "%dof%d.%016x"

func partNamed(name string) (f partFile, ok bool) {
	var id uint64
	n, _ := fmt.Sscanf(name, "%dof%d.%x", &f.share, &f.shares, &id)
	f.name = name
	return f, n == 3 && fmt.Sprintf(partPattern, f.share, f.shares, id) == name
}

// partFiles lists the parts, whatever is in their place.
func (s *Store) partFiles() (files []partFile, err error) {
	entries, err := s.entries(s.partsDir())
	for _, e := range entries {
		if f, ok := partNamed(e.Name()); ok {
			f.path = filepath.Join(s.partsDir(), f.name)
			f.open = func() (*os.File, error) { return s.read(f.path) }
			files = append(files, f)
		}
	}
	return files, err
}

// read reads a part, whose file stays open, and describes the file as it was before.
func (f partFile) read() (*journal, fs.FileInfo, error) {
	file, err := f.open()
	if err != nil {
		return nil, nil, err
	}
	state, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	j, err := readJournal(f.name, file, state.Size())
	return j, state, err
}

// A PartInfo describes a part.
type PartInfo struct {
	Name          string // of its file
	Share, Shares int
	Note          *PartNote // what it begins with; nil if that isn't on the disk
	End           *PartEnd  // nil while the share runs, and for ever if it was killed
	Size          int64
	Items         int           // recorded outcomes
	Age           time.Duration // of its last record
}

// InUse reports whether a share may still write the part.
func (p PartInfo) InUse() bool { return p.End == nil && p.Age < partInUse }

// Parts describes the parts, in the order of their names. Those that can't be read are left out, with a
// warning. Ages are by the clock of the disk's server or, where nothing can be written, by this machine's.
func (s *Store) Parts() (list []PartInfo, err error) {
	now := time.Now()
	if s.realFolder(s.partsDir()) == nil {
		if t, err := s.diskTime(); err == nil {
			now = t
		} else if errors.As(err, new(stop)) {
			return nil, err
		}
	}
	err = s.eachPart(func(p *mergedPart) error {
		list = append(list, p.info(now))
		return nil
	})
	return list, err
}

func (p *mergedPart) info(now time.Time) PartInfo {
	return PartInfo{p.partFile.name, p.share, p.shares, p.head, p.last, p.state.Size(), p.items,
		now.Sub(p.state.ModTime())}
}

// eachPart calls fn for each part that can be read.
func (s *Store) eachPart(fn func(p *mergedPart) error) error {
	files, err := s.partFiles()
	for _, f := range files {
		j, state, e := f.read()
		if e != nil {
			if !errors.Is(e, fs.ErrNotExist) {
				s.warn("part %s can't be read: %v", f.name, e)
			}
			continue
		}
		err = errors.Join(err, fn(&mergedPart{journal: j, partFile: f, state: state}))
		j.close()
	}
	return err
}

// diskTime returns what time it is by the clock that stamps files in parts/, which exists. It makes a file
// there, also in a store opened for reading, and removes it: a client of a file server then lists the folder
// afresh.
func (s *Store) diskTime() (now time.Time, err error) {
	path := s.tempName(filepath.Join(s.partsDir(), "now"))
	f, err := s.open(path, os.O_WRONLY|os.O_EXCL, 0o666)
	if err != nil {
		return now, err
	}
	defer f.Close()
	if err = s.write(f, []byte{'\n'}); errors.As(err, new(stop)) {
		return now, err
	}
	info, e := f.Stat()
	if err = cmp.Or(err, s.writeErr(e)); err == nil {
		now = info.ModTime()
	}
	return now, cmp.Or(s.remove(path), err)
}
