package publish

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadingIsBounded holds what is read of a stranger's review folder against its bounds, on disk and at a
// revision: one file, all files together, fields, columns; and names what isn't the file.
func TestReadingIsBounded(t *testing.T) {
	needGit(t)
	wide := strings.Repeat("c,", 200_000) + "c\n"
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) +
		"\nsize 9\n"
	for name, c := range map[string]struct {
		files map[string]string
		sizes map[string]int64 // of files without blocks on the disk
		want  string
	}{
		"a file": {nil, map[string]int64{"items/a.csv": readLimit + 1},
			"no file of a review folder has more than"},
		"all files": {nil, map[string]int64{"items/a.csv": readLimit / 2, "items/b.csv": readLimit / 2,
			"items/c.csv": 1}, "bytes together"},
		"fields": {map[string]string{"items/a.csv": strings.Repeat(strings.Repeat(",", 1<<20)+"\n", 8)}, nil,
			"fields together"},
		"columns": {map[string]string{"tables/a.csv": wide + wide}, nil, "a line of more than 4096 " +
			"columns"},
		"a pointer": {map[string]string{"cells/a.jsonl": pointer}, nil, "a pointer of Git LFS"},
	} {
		repo := t.TempDir()
		dir := filepath.Join(repo, "small")
		gitIn(t, repo, true, "init", "-q", "-b", "main")
		if v := write(t, dir, newWorld().results()); !v.OK() {
			t.Fatalf("%s", v)
		}
		if _, err := ReadVersion(dir); err != nil {
			t.Fatal(err)
		}
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		for file, size := range c.sizes {
			path := filepath.Join(dir, file)
			if err := os.WriteFile(path, nil, 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, size); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		if _, err := ReadVersion(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("%s: it took %v", name, d)
		}
		gitIn(t, repo, true, "add", ".")
		gitIn(t, repo, true, "commit", "-q", "-m", "x")
		if _, err := ReadRevision(t.Context(), "HEAD", dir); err == nil || !strings.Contains(err.Error(),
			c.want) {
			t.Errorf("%s at a revision: %v, want %q", name, err, c.want)
		}
	}
}

// A file without an end on the disk costs a run nothing that publishes over it.
func TestFilesOfSparseFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	write(t, dir, newWorld().results())
	path := filepath.Join(dir, "items", "huge.csv")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<42); err != nil {
		t.Skip(err)
	}
	if files, err := Files(dir); err != nil || len(files) == 0 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// A clone that lacks commits or files reports that where one of them is asked for.
func TestIncompleteClones(t *testing.T) {
	needGit(t)
	repo := t.TempDir()
	gitIn(t, repo, true, "init", "-q", "-b", "main", "whole")
	whole := filepath.Join(repo, "whole")
	for i := range 3 {
		w := newWorld()
		w.steps["rise"] = i
		write(t, filepath.Join(whole, "small"), w.results())
		gitIn(t, whole, true, "add", ".")
		gitIn(t, whole, true, "commit", "-q", "--allow-empty", "-m", fmt.Sprint(i))
	}
	gitIn(t, repo, true, "clone", "-q", "--depth=1", "file://"+whole, "shallow")
	for revision, want := range map[string]string{
		"HEAD~2": "this clone is shallow", "none": "neither a folder nor a revision of git"} {
		_, err := ReadRevision(t.Context(), revision, filepath.Join(repo, "shallow", "small"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(),
			"exit status") {
			t.Errorf("%s: %v, want %q", revision, err, want)
		}
	}
	if _, err := ReadRevision(t.Context(), "HEAD~9", filepath.Join(whole, "small")); err == nil ||
		strings.Contains(err.Error(), "shallow") || strings.Contains(err.Error(), "exit status") {
		t.Error(err)
	}
	if _, err := ReadRevision(t.Context(), "HEAD", repo); err == nil ||
		!strings.Contains(err.Error(), "not a git repository") {
		t.Error(err)
	}
}
