package pipeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/store"
)

// TestExtract holds that an extract has all that a share reads of actions and of listings: where those are
// gone, nothing is lost to it.
func TestExtract(t *testing.T) {
	more := strings.Replace(everything, "  a: ", `  more:      {uses: lab/add, in: {maps: maps}}
  moreparts: {uses: lab/scale, in: {images: children}, with: {by: 13}}
  morefew:   {uses: lab/scale, in: {images: few}, with: {by: 13}}
  moremodel: {uses: lab/add, in: {maps: wild}}
  a: `, 1)
	for _, extracted := range []bool{true, false} {
		l := sharingLab(t, 200)
		l.mustRun(everything)
		dir := l.storeDir()
		if extracted {
			p := l.parse(more)
			s, err := store.Open(dir, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			o, err := l.engine(p, s).Plan(l.ctx, p)
			for range 2 { // the second one replaces the first
				if err == nil {
					err = o.Extract()
				}
			}
			if err != nil || s.Close() != nil {
				t.Fatal(err)
			}
			extracts, err := os.ReadDir(filepath.Join(dir, "shares"))
			if err != nil || len(extracts) != 1 {
				t.Errorf("%d extracts, %v", len(extracts), err)
			}
		}
		if err := os.RemoveAll(filepath.Join(dir, "actions")); err != nil {
			t.Fatal(err)
		}
		objects := 0
		all := filepath.Join(dir, "objects")
		err := filepath.WalkDir(all, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if b, err := os.ReadFile(path); err != nil || b[0] != 1 {
				return err // payloads: a listing begins with its version
			}
			objects++
			return os.Remove(path)
		})
		if err != nil || objects == 0 {
			t.Fatalf("removed %d listings, %v", objects, err)
		}
		share, _, err := store.OpenShare(dir, store.ShareName{Share: 1, Shares: 3, Experiment: "everything"},
			store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := l.parse(more)
		e := l.engine(p, share)
		e.Share = &resolve.Share{K: 1, Of: 3}
		l.events = nil
		res, err := e.Run(l.ctx, p, nil)
		if err != nil || share.Close() != nil {
			t.Fatal(err)
		}
		res.Close()
		lost, sum := l.said(pipeline.Warning), res.Summary
		if extracted && (len(lost) > 0 || sum.Failed+sum.Blocked > 0 || sum.Executed == 0) {
			t.Errorf("%v, read where it was copied from: %q", sum, lost)
		} else if !extracted && len(lost) == 0 {
			t.Error("without an extract nothing is lost")
		}
	}
}
