package store

import (
	"cmp"
	"path/filepath"

	"github.com/runexp/runexp/stages"
)

// Info tells how large a store is.
type Info struct {
	Dir         string
	Objects     int
	ObjectBytes int64
	Actions     int   // keys with a recorded action
	Groups      int   // groups with recorded items
	Items       int   // items with a recorded outcome
	RecordBytes int64 // logs, index and memos
	Damaged     int   // objects set aside because of wrong bytes
	Leftovers   int   // temporary files of processes that were killed, or still run
}

// Info counts what's in the store.
func (s *Store) Info() (Info, error) {
	in := Info{Dir: s.dir}
	size := func(path string, _ byte) error {
		n, _ := s.size(path)
		in.RecordBytes += n
		return nil
	}
	size(s.indexPath(), 0)
	size(s.memos.path, 0)
	size(s.files.path, 0)
	s.indexMu.RLock()
	in.Actions = len(s.index.newest)
	s.indexMu.RUnlock()
	damaged, _ := s.entries(filepath.Join(s.dir, "damaged"))
	in.Damaged = len(damaged)
	err := cmp.Or(s.eachLog("actions", size), s.eachLog("items", func(path string, bucket byte) error {
		type item struct{ group, key stages.Digest }
		groups, items := map[stages.Digest]bool{}, map[item]bool{}
		_, err := s.readLog(path, 0, itemFrame, func(_ int64, group stages.Digest, payload []byte) {
			groups[group] = true
			_, rs, _ := decodeItems(payload)
			for _, r := range rs {
				items[item{group, r.Key}] = true
			}
		})
		in.Groups += len(groups)
		in.Items += len(items)
		return cmp.Or(err, size(path, bucket))
	}), s.eachObject(func(o objectFile) error {
		if o.temporary() {
			in.Leftovers++
		} else {
			in.Objects++
			in.ObjectBytes += o.size
		}
		return nil
	}))
	return in, err
}
