package pipeline

import (
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// Brief has the store write copies of what the shares of the next wave read: cached cells that lead to items
// which are missing. Otherwise each of them asks a file server for the same hundreds of files.
func (o *Outlook) Brief() error {
	read := make([]bool, len(o.r.nodes))
	for _, n := range o.r.nodes {
		if o.ahead[n.Index].Kind == IsCached || n.Stage.Relation == stages.Whole {
			continue
		}
		read[n.calls.n.Index] = true
		for _, from := range o.r.edges(n) {
			read[from.Index], read[from.calls.n.Index] = true, true
		}
	}
	var hits []store.Hit
	for i, n := range o.r.nodes {
		if read[i] && n.state == cached {
			hits = append(hits, n.stored())
		}
	}
	return o.r.store.WriteBrief(o.r.plan.Name, hits)
}
