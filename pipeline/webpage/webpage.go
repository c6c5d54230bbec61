// Package webpage writes a review folder as one HTML page that people can send. The page needs no network,
// no server and no other file.
//
//   - webpage.go: [Write].
//   - model.go: what the page shows, as JSON, made from the folder (package publish).
//   - maps.go, thumbnail.go: the maps of the folder that the store still has, with their images, made
//     small.
//   - removals.go: what curves replace in images, point by point.
//   - texts.go: the maps of texts, with their words and the curves over them.
//   - scores.go: the leaderboard's means with their intervals.
//   - winners.go: who is best in each case.
//   - changes.go: what changed since another version of the folder.
//   - html.go: the page around the model; assets/ has its styles and scripts.
//
// All texts of a folder are data: the scripts set them as text, never as markup, and the page's policy
// forbids every other script and every address.
package webpage

import (
	"io"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
)

// A Source is a version of a review folder with its maps in the store.
type Source struct {
	Version *publish.Version
	Maps    []*results.CellMaps
	Missing string // why no maps are known, "" if they are
}

// Write writes the page of a folder. It shows what changed since before, unless that is nil.
func Write(w io.Writer, now Source, before *Source) error {
	m, err := newModel(now, before)
	if err != nil {
		return err
	}
	return writeHTML(w, m)
}
