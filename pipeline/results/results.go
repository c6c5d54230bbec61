// Package results publishes the results of a run. It connects the engine, which publishes nothing, with
// package publish, which knows neither runs nor stores:
//
//   - results.go: [Publish] updates a review folder, unless it is known to be up to date; [Verify] compares
//     one.
//   - gather.go: [Of] collects the results to publish, cell by cell.
//   - lines.go: cells that nothing published distinguishes have one line together.
//   - maps.go: [FindMaps] finds the maps of a published folder in the store, with their images and classes.
//   - map_index.go: the index by which it does so, which publishing leaves in the store; curve_index.go adds
//     the curves in the order of maps, text_index.go the words of texts.
package results

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/stages"
)

// Publish updates the review folder dir to the results of a run. command is the command by which a reader
// reproduces the run. current means that the folder was known to be up to date, so that nothing was
// compared.
func Publish(ctx context.Context, r *pipeline.Result, dir, command string, o publish.Options) (
	v publish.Verdict, current bool, err error) {
	key, err := publishKey(r, dir, command)
	if err != nil {
		return v, false, err
	}
	var known upToDate
	files, _ := publish.Files(dir) // Write returns the error
	if b, ok := r.Store().Memo(key); ok && json.Unmarshal(b, &known) == nil && len(known.Files) > 0 &&
		slices.Equal(known.Files, files) {
		return publish.Verdict{Answer: known.Answer}, true, nil
	}
	review, err := Of(ctx, r, command)
	if err != nil {
		return v, false, err
	}
	if v, err = publish.Write(dir, review, o); err != nil {
		return v, false, err
	}
	if err := rememberMaps(r, dir); err != nil {
		return v, false, err
	}
	if !v.OK() || r.Summary.Failed+r.Summary.Blocked > 0 {
		return v, false, nil
	}
	known.Answer = v.Answer
	if known.Files, err = publish.Files(dir); err != nil {
		return v, false, err
	}
	b, err := json.Marshal(known)
	if err != nil {
		return v, false, err
	}
	return v, false, r.Store().SetMemo(key, b)
}

// An upToDate is the store's record of a folder that a run reproduced: while the folder has these files, a
// run with the same results has nothing to compare.
type upToDate struct {
	Answer string
	Files  []publish.File
}

// publishKey digests all that decides the content of a review folder: the run, where the folder is, and the
// command in it.
func publishKey(r *pipeline.Result, dir, command string) (stages.Digest, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return stages.Digest{}, err
	}
	return key.Of("publish", []stages.Digest{r.Digest()}, []string{dir, command}), nil
}

// Verify compares the review folder dir with the results of a run, and writes nothing.
func Verify(ctx context.Context, r *pipeline.Result, dir string) (publish.Verdict, error) {
	review, err := Of(ctx, r, "")
	if err != nil {
		return publish.Verdict{}, err
	}
	return publish.Verify(dir, review)
}
