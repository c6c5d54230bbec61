package store

import (
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
	err := s.eachObject(func(o objectFile) error {
		if o.temporary() {
			in.Leftovers++
			return nil
		}
		in.Objects++
		in.ObjectBytes += o.size
		return nil
	})
	if err != nil {
		return in, err
	}
	s.indexMu.RLock()
	in.Actions = len(s.index.newest)
	s.indexMu.RUnlock()
	size := func(path string) {
		if n, err := s.size(path); err == nil {
			in.RecordBytes += n
		}
	}
	for _, path := range []string{s.indexPath(), s.memos.path, s.files.path} {
		size(path)
	}
	s.eachLog("actions", func(path string, _ byte) error { size(path); return nil })
	err = s.eachLog("items", func(path string, _ byte) error {
		size(path)
		type item struct{ group, key stages.Digest }
		groups, items := map[stages.Digest]bool{}, map[item]bool{}
		_, err := s.readLog(path, 0, itemFrame, func(_ int64, group stages.Digest, payload []byte) {
			groups[group] = true
			if _, rs, err := decodeItems(payload); err == nil {
				for _, r := range rs {
					items[item{group, r.Key}] = true
				}
			}
		})
		in.Groups += len(groups)
		in.Items += len(items)
		return err
	})
	if err != nil {
		return in, err
	}
	damaged, _ := s.entries(filepath.Join(s.dir, "damaged"))
	in.Damaged = len(damaged)
	return in, nil
}
