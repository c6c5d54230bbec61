package pipeline

import (
	"errors"
	"fmt"

	"github.com/runexp/runexp/stages"
)

// sourcesOf asks a stage for what it reads from outside.
func (r *resolver) sourcesOf(n *node) (err error) {
	if n.Stage.Primary() >= 0 {
		return r.joinedSources(n)
	}
	n.sources, err = guardSources(n.Cell, nil)
	if err != nil {
		return err
	}
	if r.plan.Limit > 0 && n.Stage.Relation != stages.Whole && len(n.sources) > r.plan.Limit {
		n.sources = n.sources[:r.plan.Limit]
	}
	if n.Stage.Relation != stages.Whole {
		if len(n.sources) == 0 {
			return errors.New("there is nothing to read: no item at all")
		}
		if err := unique(n.sources); err != nil {
			return err
		}
	}
	n.digests, err = r.fileDigests(n.sources)
	return err
}

func unique(sources []stages.Source) error {
	if len(sources) == 1 {
		return nil
	}
	seen := make(map[string]bool, len(sources))
	for i := range sources {
		if id := sources[i].ID; seen[id] {
			return fmt.Errorf("two items are called %q", id)
		}
		seen[sources[i].ID] = true
	}
	return nil
}

func (r *resolver) fileDigests(sources []stages.Source) ([]stages.Digest, error) {
	var digests []stages.Digest
	for i := range sources {
		if sources[i].File == "" {
			continue
		}
		d, _, err := r.store.FileDigest(sources[i].File)
		if err != nil {
			return nil, err
		}
		if digests == nil {
			digests = make([]stages.Digest, len(sources))
		}
		digests[i] = d
	}
	return digests, nil
}

// sourceDigest names the content of one source: its file's bytes and its note.
func sourceDigest(s *stages.Source, file stages.Digest) stages.Digest {
	h := newHasher("source")
	h.text(s.Note)
	h.digest(file)
	return h.sum()
}

func (n *node) sourceDigest(i int) stages.Digest {
	var file stages.Digest
	if n.digests != nil {
		file = n.digests[i]
	}
	return sourceDigest(&n.sources[i], file)
}

// joinedSources asks a stage with both items and sources for the sources of
// its items.
func (r *resolver) joinedSources(n *node) error {
	ids, err := r.primaryIDs(n)
	if err != nil {
		return err
	}
	n.sources, err = guardSources(n.Cell, ids.ids)
	if err != nil {
		return err
	}
	if len(n.sources) != ids.len() {
		return &BugError{fmt.Errorf("stage %s lists %d sources for %d items", n.Stage.Name, len(n.sources), ids.len())}
	}
	n.digests, err = r.fileDigests(n.sources)
	return err
}

// guardSources calls a stage's Sources and turns a panic into an error.
func guardSources(c *Cell, ids []string) (s []stages.Source, err error) {
	defer catch(&err)
	return c.Stage.Sources(c.Params, ids)
}
