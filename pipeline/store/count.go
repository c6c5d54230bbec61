package store

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/runexp/runexp/stages"
)

// CountItems returns how many items of the groups that ask accepts have a recorded outcome, by their group,
// whatever made it, in the store or in shares. others counts those of other groups that only shares of an
// experiment have. Records that are damaged or can't be read are left out.
func (s *Store) CountItems(experiment string, ask func(group stages.Digest) bool) (
	counts map[stages.Digest]int, others int,
) {
	keys := itemKeys{} // a share that ran twice recorded them twice
	foreign, stored := itemKeys{}, itemKeys{}
	err := s.eachShare(func(p *mergedShare) error {
		own := p.start != nil && p.start.Experiment == experiment
		return p.eachFrame(func(_ int64, group stages.Digest, payload []byte) {
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

// add adds those of an item record.
func (k itemKeys) add(group stages.Digest, payload []byte) {
	_, _, items, _ := decodeItems(payload)
	for _, it := range items {
		k[group] = append(k[group], binary.LittleEndian.Uint64(it.Key[:]))
	}
}

// distinct returns those of a group, sorted.
func (k itemKeys) distinct(group stages.Digest) []uint64 {
	slices.Sort(k[group])
	return slices.Compact(k[group])
}
