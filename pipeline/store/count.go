package store

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/runexp/runexp/stages"
)

// CountItems returns how many items of the groups that ask accepts have a recorded outcome, by their group,
// whatever made it, parts included. Records that are damaged or can't be read are left out.
func (s *Store) CountItems(ask func(group stages.Digest) bool) map[stages.Digest]int {
	keys := map[stages.Digest][]uint64{} // their beginnings: a share that ran twice recorded them twice
	take := func(_ int64, group stages.Digest, payload []byte) {
		if !ask(group) {
			return
		}
		_, _, items, _ := decodeItems(payload)
		for _, it := range items {
			keys[group] = append(keys[group], binary.LittleEndian.Uint64(it.Key[:]))
		}
	}
	logs, err := s.logs(itemFrame)
	for _, log := range logs {
		_, e := s.readLog(log, 0, take)
		err = cmp.Or(err, e)
	}
	err = cmp.Or(err, s.eachPart(func(p *mergedPart) error { return p.eachFrame(take) }))
	if err != nil {
		s.warn("item records can't be read: %v", err)
	}
	counts := map[stages.Digest]int{}
	for group, list := range keys {
		slices.Sort(list)
		counts[group] = len(slices.Compact(list))
	}
	return counts
}
