// Package webpage writes a review folder as one HTML page that people can send: it needs no network, no
// server and no other file.
//
//   - model.go: what the page shows, as JSON; made of the folder (package publish) and, where the store has
//     them, of the maps behind it.
//   - scores.go: the leaderboard's means, intervals, and what can't be told apart.
//   - thumbnail.go: images and maps, made small.
//   - changes.go: what changed since another version of the folder.
//   - html.go: the page around the model; page/ has its styles and scripts.
//
// All texts of a folder are data: the scripts set them as text, never as markup, and the page's policy lets
// it run no other script and load nothing.
package webpage

import (
	"io"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
)

// A Source is a version of a review folder with the pictures that the store has of it.
type Source struct {
	Version *publish.Version
	Maps    []*results.CellMaps
	Missing string // why there are none, "" if there are
}

// Write writes the page of a folder. Without a version to compare with, before is nil.
func Write(w io.Writer, now Source, before *Source) error {
	m, err := newModel(now, before)
	if err != nil {
		return err
	}
	return writeHTML(w, m)
}
