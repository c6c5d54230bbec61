package store

import (
	"cmp"
	"encoding/binary"
	"path/filepath"
	"slices"

	"github.com/runexp/runexp/stages"
)

// Info has the counts of a store's contents.
type Info struct {
	Dir         string
	Objects     int
	ObjectBytes int64
	Actions     int   // keys with a recorded action
	Items       int   // items with a recorded outcome
	RecordBytes int64 // logs, index, memos and extracts
	Damaged     int   // objects set aside because of wrong bytes
	Shares      int   // that aren't removed yet
	SharesInUse int   // the ones that may still run
	ShareItems  int   // items that shares record, in the store or not
	ShareBytes  int64
	Leftovers   int // temporary files of processes that were killed, or still run
}

// Info counts the contents of the store.
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

// CountItems returns how many items of the groups that ask accepts have a recorded outcome, by their group,
// from any class of device, in the store or in shares. others counts those of other groups that only shares
// of an experiment have. Records that are damaged or can't be read are left out.
func (s *Store) CountItems(experiment string, ask func(group stages.Digest) bool) (
	counts map[stages.Digest]int, others int,
) {
	keys := itemKeys{} // a share that ran twice recorded them twice
	foreign, stored := itemKeys{}, itemKeys{}
	err := s.eachShare(func(f *shareFile) error {
		own := f.start != nil && f.start.Experiment == experiment
		return f.eachFrame(func(_ int64, group stages.Digest, payload []byte) {
			if ask(group) {
				keys.add(group, payload)
			} else if own {
				foreign.add(group, payload)
			}
		})
	})
	logs, e := s.logs(itemFrame)
	err = cmp.Or(err, e)
	for _, log := range logs {
		_, e := s.readLog(log, 0, func(_ int64, group stages.Digest, payload []byte) {
			if ask(group) {
				keys.add(group, payload)
			} else if foreign[group] != nil {
				stored.add(group, payload)
			}
		})
		err = cmp.Or(err, e)
	}
	if err != nil {
		s.warn("item records can't be read: %v", err)
	}
	counts = map[stages.Digest]int{}
	for group := range keys {
		counts[group] = len(keys.distinct(group))
	}
	for group := range foreign {
		known := stored.distinct(group)
		for _, key := range foreign.distinct(group) {
			if _, found := slices.BinarySearch(known, key); !found {
				others++
			}
		}
	}
	return counts, others
}

// itemKeys are the beginnings of items' keys, by their group.
type itemKeys map[stages.Digest][]uint64

// add adds the keys of an item record.
func (k itemKeys) add(group stages.Digest, payload []byte) {
	_, _, items, _ := decodeItems(payload)
	for _, it := range items {
		k[group] = append(k[group], binary.LittleEndian.Uint64(it.Key[:]))
	}
}

// distinct returns the distinct keys of a group, sorted.
func (k itemKeys) distinct(group stages.Digest) []uint64 {
	slices.Sort(k[group])
	return slices.Compact(k[group])
}
