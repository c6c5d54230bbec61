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

// A SharesReport says what a merge of shares added.
type SharesReport struct {
	MergeReport
	Shares  int // that were there
	Removed int // of them, since all of their contents was in the store already

	damaged []foundShare // that aren't in use
}

// shareInUse is the longest time between two records of a share without an end. A share that has recorded
// nothing for longer counts as lost.
const shareInUse = 24 * time.Hour

// MergeShares adds the contents of the shares of this store, checks them as Merge does, and syncs them to the
// disk. Unlike Merge it adds memos. It removes a share only if all of it was in the store before this merge
// and nothing will be added to the share: a second merge has then found what a first one added. Two machines
// may call it at once, and it may be called again after any interruption.
func (s *Store) MergeShares(ctx context.Context) (r SharesReport, err error) {
	if s.opts.ReadOnly {
		return r, errReadOnly
	}
	exists := func(dir string) bool { return !errors.Is(s.realFolder(dir), fs.ErrNotExist) }
	if !slices.ContainsFunc(s.shareDirs(), exists) {
		return r, nil
	}
	now, err := s.diskTime()
	if err != nil {
		return r, err
	}
	shares, err := s.shareFiles()
	if err != nil {
		return r, err
	}
	r.Shares = len(shares)
	r.MergeReport, err = s.mergeShares(ctx, shares, func(m *mergedShare) error {
		for key, val := range m.file.memos {
			if err := s.SetMemo(key, val); err != nil {
				return err
			}
		}
		over := m.over(now)
		if over && len(m.to.Refused) > 0 {
			r.damaged = append(r.damaged, m.file.foundShare)
		}
		goes := over && len(m.to.Refused) == 0 && !m.to.added
		if (m.to.added || goes) && m.file.start != nil {
			if err := s.RemoveExtract(m.file.start.Experiment); err != nil {
				return err
			}
		}
		if !goes {
			return nil
		}
		r.Removed++
		return s.remove(m.file.path)
	})
	return r, err
}

// MergeFiles is Merge for the file of a share, or a folder of such files, and removes none of them. found is
// false if path is neither.
func (s *Store) MergeFiles(ctx context.Context, path string) (r MergeReport, found bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return r, false, err
	}
	var shares []foundShare
	add := func(f foundShare, path string) {
		f.path = path
		f.openFile = func() (*os.File, error) { return stages.OpenFile(path) }
		shares = append(shares, f)
	}
	if info.Mode().IsRegular() {
		add(foundShare{name: filepath.Base(path)}, path)
	} else if entries, err := os.ReadDir(path); err == nil {
		for _, e := range entries {
			if f, ok := shareNamed(e.Name()); ok && e.Type().IsRegular() {
				add(f, filepath.Join(path, f.name))
			}
		}
	}
	if s.opts.ReadOnly {
		return r, len(shares) > 0, errReadOnly
	}
	r, err = s.mergeShares(ctx, shares, func(*mergedShare) error { return nil })
	return r, len(shares) > 0, err
}

// A mergedShare is a share that is being merged.
type mergedShare struct {
	file   *shareFile
	failed error // of reading it
	to     *merging
	groups []stages.Digest // the remaining ones, sorted
}

// over reports whether nothing will be added to the share. A share that this user can't read isn't over,
// since it may be whole.
func (m *mergedShare) over(now time.Time) bool {
	if m.failed != nil {
		return !errors.Is(m.failed, fs.ErrPermission)
	}
	return !m.file.info(now).InUse()
}

// mergeShares adds shares to the store, and calls done for each when its contents are on the disk.
func (s *Store) mergeShares(ctx context.Context, shares []foundShare, done func(*mergedShare) error) (
	r MergeReport, err error) {
	for len(shares) > 0 && err == nil {
		shares, err = s.mergeBatch(ctx, shares, &r, done)
	}
	return r, err
}

// batchFrames is about how many frames of shares a merge has in memory at once, some 60 bytes each, so that
// its memory doesn't depend on the number of images. Tests change it.
var batchFrames = 4 << 20

// mergeBatch is mergeShares for the first shares, about as many as may be open at once and as fit in memory,
// and returns the others. It reads each log once for the whole batch.
func (s *Store) mergeBatch(ctx context.Context, shares []foundShare, r *MergeReport,
	done func(*mergedShare) error) (others []foundShare, err error) {
	var batch []*mergedShare
	var files []*shareFile
	open := func(o ObjectRef) (b objectBytes, err error) {
		for _, f := range slices.Backward(files) {
			if b, err = f.open(o); err == nil {
				break
			}
		}
		return b, err
	}
	combine := newCombining(s, open)
	defer func() {
		r.add(MergeReport{Objects: combine.objects, Bytes: combine.bytes})
		for _, m := range batch {
			r.add(m.to.MergeReport)
			m.file.close()
		}
	}()
	frames := 0
	for n, found := range shares {
		full := n >= s.maxLogs || frames >= batchFrames
		if full && (found.share != shares[n-1].share || found.shares != shares[n-1].shares) {
			others = shares[n:]
			break // a later attempt's records may refer to objects of an earlier one
		}
		f, err := found.read()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another merge has removed it
		}
		m := &merging{s: s, ctx: ctx, open: open, objects: map[ObjectRef]error{}, combine: combine}
		if err != nil {
			m.refuse(found.name, "%v", err)
			f = newShareFile(found, nil)
		} else if f.altered {
			m.refuse(found.name, "not a share, or damaged, from byte %d on", f.end)
		}
		groups := slices.SortedFunc(maps.Keys(f.groups), func(a, b stages.Digest) int {
			return slices.Compare(a[:], b[:])
		})
		files = append(files, f)
		frames += f.frames
		batch = append(batch, &mergedShare{f, err, m, groups})
	}
	for bucket := range buckets {
		if err := s.mergeBucket(batch, s.log(itemFrame, stages.Digest{byte(bucket)})); err != nil {
			return nil, err
		}
		clear(combine.moved)
	}
	if err := combine.flush(); err != nil {
		return nil, err
	}
	if len(batch) > 0 {
		if err := s.syncStore(); err != nil {
			return nil, err
		}
	}
	for _, m := range batch {
		if err := done(m); err != nil {
			return nil, err
		}
	}
	return others, nil
}

// mergeBucket adds the records that belong in one log.
func (s *Store) mergeBucket(batch []*mergedShare, file logFile) error {
	groups := map[stages.Digest]bool{}
	for _, m := range batch {
		for _, g := range m.groups {
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
	for _, m := range batch {
		for ; len(m.groups) > 0 && m.groups[0][0] == file.bucket; m.groups = m.groups[1:] {
			group := m.groups[0]
			_, err := m.file.eachItemFrame(group, 0, func(off int64, payload []byte) error {
				return m.to.outcomes(m.file.name, file, off, group, payload, known)
			})
			if damage, ok := errors.AsType[*Miss](err); ok {
				m.to.refuse(m.file.name, "%v", damage)
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// A foundShare is a file that has the name of a share.
type foundShare struct {
	name, path    string
	share, shares int
	openFile      func() (*os.File, error)
}

// foundShare describes a file in a folder of shares.
func (s *Store) foundShare(dir, name string) foundShare {
	f, _ := shareNamed(name)
	f.path = filepath.Join(dir, name)
	f.openFile = func() (*os.File, error) { return s.read(f.path) }
	return f
}

// sharePattern is the format of a share file's name: the share, the number of shares and a random number.
const sharePattern = "%dof%d.%016x"

func shareNamed(name string) (f foundShare, ok bool) {
	var id uint64
	n, _ := fmt.Sscanf(name, "%dof%d.%x", &f.share, &f.shares, &id)
	f.name = name
	return f, n == 3 && fmt.Sprintf(sharePattern, f.share, f.shares, id) == name
}

// shareDirs returns the folders that have shares: the folder of this version, and that of earlier versions.
func (s *Store) shareDirs() []string { return []string{s.sharesDir(), filepath.Join(s.dir, "parts")} }

// shareFiles lists the shares by the names of files, whose contents it doesn't look at.
func (s *Store) shareFiles() (shares []foundShare, err error) {
	for _, dir := range s.shareDirs() {
		entries, e := s.entries(dir)
		err = cmp.Or(err, e)
		for _, e := range entries {
			if _, ok := shareNamed(e.Name()); ok {
				shares = append(shares, s.foundShare(dir, e.Name()))
			}
		}
	}
	return shares, err
}

// A ShareInfo describes a share.
type ShareInfo struct {
	Name          string // of its file
	Share, Shares int
	Start         *ShareStart // what it begins with; nil if that isn't on the disk
	End           *ShareEnd   // nil while the share runs, and for ever if it was killed
	Size          int64
	Items         int           // recorded outcomes
	Age           time.Duration // of its last record
}

// InUse reports whether the share may still be written.
func (i ShareInfo) InUse() bool { return i.End == nil && i.Age < shareInUse }

// Shares describes the shares, in the order of their names. Those that can't be read are left out, with a
// warning. Ages are by the clock of the disk's server or, where nothing can be written, by this machine's.
func (s *Store) Shares() (list []ShareInfo, err error) {
	now := time.Now()
	if s.realFolder(s.sharesDir()) == nil {
		if t, err := s.diskTime(); err == nil {
			now = t
		} else if errors.As(err, new(stop)) {
			return nil, err
		}
	}
	err = s.eachShare(func(f *shareFile) error {
		list = append(list, f.info(now))
		return nil
	})
	return list, err
}

func (f *shareFile) info(now time.Time) ShareInfo {
	return ShareInfo{f.name, f.share, f.shares, f.start, f.last, f.state.Size(), f.items,
		now.Sub(f.state.ModTime())}
}

// eachShare calls fn for each share that can be read.
func (s *Store) eachShare(fn func(f *shareFile) error) error {
	shares, err := s.shareFiles()
	for _, found := range shares {
		f, e := found.read()
		switch {
		case e == nil:
			err = errors.Join(err, fn(f))
			f.close()
		case !errors.Is(e, fs.ErrNotExist):
			s.warn("share %s can't be read: %v", found.name, e)
		}
	}
	return err
}

// diskTime returns the time by the clock that stamps files in shares/, a folder that exists. It makes a file
// there, also in a store opened for reading, and removes it: a client of a file server then lists the folder
// afresh.
func (s *Store) diskTime() (now time.Time, err error) {
	path := s.tempName(filepath.Join(s.sharesDir(), "now"))
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
