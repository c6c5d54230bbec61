package store

import (
	"cmp"
	"path/filepath"

	"github.com/runexp/runexp/stages"
)

// Info counts what a store holds.
type Info struct {
	Dir         string
	Objects     int
	ObjectBytes int64
	Actions     int   // keys with a recorded action
	Items       int   // items with a recorded outcome
	RecordBytes int64 // logs, index, memos and extracts
	Damaged     int   // objects set aside because of wrong bytes
	Shares      int   // that aren't removed yet
	SharesInUse int   // of them: they may run
	ShareItems  int   // items that they record, be they in the store or not
	ShareBytes  int64
	Leftovers   int // temporary files of processes that were killed, or still run
}

// Info counts what's in the store.
func (s *Store) Info() (Info, error) {
	in := Info{Dir: s.dir}
	s.indexMu.RLock()
	in.Actions = len(s.index.newest)
	s.indexMu.RUnlock()
	damaged, _ := s.entries(filepath.Join(s.dir, "damaged"))
	in.Damaged = len(damaged)
	logs, err := s.logs(indexFrame, actionFrame, itemFrame, memoFrame, statFrame)
	for _, log := range logs {
		n, _ := s.size(log.path)
		in.RecordBytes += n
		if log.kind == itemFrame && err == nil {
			err = s.countItems(log, &in.Items)
		}
	}
	err = cmp.Or(err, s.addShares(&in))
	return in, cmp.Or(err, s.eachObject(func(o objectFile) error {
		if o.temporary() {
			in.Leftovers++
		} else {
			in.Objects++
			in.ObjectBytes += o.Size()
		}
		return nil
	}))
}

func (s *Store) addShares(in *Info) error {
	entries, _ := s.entries(s.sharesDir()) // as Shares does
	for _, e := range entries {
		if info, err := e.Info(); err == nil && isExtract(e.Name()) {
			in.RecordBytes += info.Size()
		}
	}
	shares, err := s.Shares()
	for _, p := range shares {
		in.Shares++
		in.ShareItems += p.Items
		in.ShareBytes += p.Size
		if p.InUse() {
			in.SharesInUse++
		}
	}
	return err
}

func (s *Store) countItems(log logFile, n *int) error {
	type item struct{ group, key stages.Digest }
	items := map[item]bool{}
	_, err := s.readLog(log, 0, func(_ int64, group stages.Digest, payload []byte) {
		_, _, rs, _ := decodeItems(payload)
		for _, r := range rs {
			items[item{group, r.Key}] = true
		}
	})
	*n += len(items)
	return err
}
