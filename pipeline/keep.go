package pipeline

import "github.com/runexp/runexp/stages"

// Keys adds to set what the results of the cached cells lie under in the store.
func (o *Outlook) Keys(set map[stages.Digest]bool) {
	for _, n := range o.nodes {
		if n.state == cached {
			set[n.key] = true
		}
	}
}
