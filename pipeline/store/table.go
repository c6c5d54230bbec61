package store

import "github.com/runexp/runexp/stages"

// A Table is a [Listing] whose items lie in the spool.
type Table struct {
	Facts stages.Facts

	parents, names bool
	rows           *Rows
}

// An Entry is one item of a table.
type Entry struct {
	Ref
	Parent     int32 // see [Listing]; 0 for none
	ID, Origin string
}

// Table puts the items of l into the spool.
func (s *Store) Table(l *Listing) (*Table, error) {
	t := &Table{Facts: l.Facts, parents: l.Parents != nil, names: l.IDs != nil, rows: s.NewRows()}
	var b []byte
	for i := range l.Len() {
		b = appendRef(b[:0], l.Ref(i))
		if t.parents {
			b = appendUint(b, uint64(uint32(l.Parents[i])))
		}
		if t.names {
			b = appendText(b, l.IDs[i])
			if l.Origins != nil && l.Origins[i] != l.IDs[i] {
				b = appendText(b, l.Origins[i])
			}
		}
		if err := t.rows.Append(b); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Len returns the number of items.
func (t *Table) Len() int { return t.rows.Len() }

// HasParents reports whether items say what they were made from.
func (t *Table) HasParents() bool { return t.parents }

// At returns item i.
func (t *Table) At(i int) (e Entry, err error) {
	b, err := t.rows.At(i)
	if err != nil {
		return e, err
	}
	d := &decoder{b: b}
	e.Ref = readRef(d)
	if t.parents {
		e.Parent = int32(uint32(d.uint()))
	}
	if t.names {
		e.ID = d.text()
		if e.Origin = e.ID; len(d.b) > 0 {
			e.Origin = d.text()
		}
	}
	return e, nil
}

// PayloadDigest returns the digest of item i's payload.
func (t *Table) PayloadDigest(i int) (stages.Digest, error) {
	b, err := t.rows.At(i)
	if err != nil {
		return stages.Digest{}, err
	}
	d := &decoder{b: b}
	skipRef(d)
	return d.digest(), nil
}
