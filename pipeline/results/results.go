// Package results takes what a run found to a review folder, and what such a folder shows back to the store. It
// stands between the engine, which publishes nothing, and package publish, which knows no run:
//
//   - results.go: [Publish] updates a review folder, unless it is known to be up to date; [Verify] compares.
//   - gather.go: [Of] gathers what a run has to publish, cell by cell.
//   - lines.go: which cells share a line, because nothing that is published tells them apart.
//   - pictures.go: [Pictures] finds the maps, images and classes of a published folder in the store.
//   - picture_index.go: what publishing remembers for that, in the store.
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

// Publish updates the review folder dir to what a run found. command is how a reader reproduces it. current is
// true when the folder was known to be up to date, and nothing was compared.
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
	if err := rememberPictures(r, dir); err != nil {
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

// An upToDate is remembered in the store of a folder that reproduces a run in everything. A folder whose files
// are still these needs no comparison when the same run finds the same results again.
type upToDate struct {
	Answer string
	Files  []publish.File
}

// publishKey names everything that decides what a review folder holds; another build may write it otherwise.
func publishKey(r *pipeline.Result, dir, command string) (stages.Digest, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return stages.Digest{}, err
	}
	return key.Of("publish", []stages.Digest{r.Digest()}, []string{dir, command}), nil
}

// Verify compares the review folder dir with what a run found, and writes nothing.
func Verify(ctx context.Context, r *pipeline.Result, dir string) (publish.Verdict, error) {
	review, err := Of(ctx, r, "")
	if err != nil {
		return publish.Verdict{}, err
	}
	return publish.Verify(dir, review)
}
