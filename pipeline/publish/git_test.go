package publish

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gitIn runs git in a folder and returns what it prints.
func gitIn(t *testing.T, dir string, ok bool, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+filepath.Join(dir, "no-settings"),
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.org")
	b, err := cmd.CombinedOutput()
	if ok && err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, b)
	}
	return string(b)
}

func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
}

// Two branches add a method each, and git merges their review folders by the attributes in them. The next run
// finds every claim where it belongs.
func TestGitMerge(t *testing.T) {
	needGit(t)
	repo := t.TempDir()
	dir := filepath.Join(repo, "artifacts", "small")
	commit := func(w *world) {
		t.Helper()
		if v := write(t, dir, w.results()); !v.OK() {
			t.Fatalf("%s", v)
		}
		gitIn(t, repo, true, "add", ".")
		gitIn(t, repo, true, "commit", "-q", "-m", "x")
	}
	base, a, b, both := newWorld(), newWorld(), newWorld(), newWorld()
	base.methods = []string{"ig", "rise"}
	a.methods = []string{"ig", "random", "rise"}
	b.methods = []string{"abs", "ig", "rise"}
	b.steps["rise"], both.steps["rise"] = 1, 1 // and one of them changes a parameter
	both.methods = []string{"abs", "ig", "random", "rise"}

	gitIn(t, repo, true, "init", "-q", "-b", "main")
	commit(base)
	gitIn(t, repo, true, "checkout", "-q", "-b", "a")
	commit(a)
	gitIn(t, repo, true, "checkout", "-q", "-b", "b", "main")
	commit(b)
	said := gitIn(t, repo, false, "merge", "a")
	for line := range strings.Lines(gitIn(t, repo, true, "diff", "--name-only", "--diff-filter=U")) {
		if name := strings.TrimSpace(line); strings.HasSuffix(name, ".csv") ||
			strings.HasSuffix(name, ".jsonl") {
			t.Errorf("%s is in conflict:\n%s", name, said)
		}
	}
	merged := folder(t, dir)
	for _, m := range both.methods {
		if !strings.Contains(merged["items/auc.csv"], "\nauc[method="+m+"],") {
			t.Errorf("the merged items lack %s:\n%s", m, merged["items/auc.csv"])
		}
	}
	if strings.Count(merged["items/auc.csv"], itemHeader) != 1 {
		t.Errorf("the merged items:\n%s", merged["items/auc.csv"])
	}
	v := write(t, dir, both.results())
	if !v.OK() || v.Reproduced.Scores != 4 || v.Reproduced.Items != 20 {
		t.Errorf("after the merge: %s", v)
	}
	_, want := fresh(t, both.results())
	same(t, folder(t, dir), want)
}

// One branch adds images, the other a method: every line changes on one side.
func TestGitMergeOfOtherItems(t *testing.T) {
	needGit(t)
	a, b, both := newWorld(), newWorld(), newWorld()
	a.items, both.items = 7, 7
	b.methods = append(b.methods, "abs")
	both.methods = b.methods
	_, base := fresh(t, newWorld().results())
	_, x := fresh(t, a.results())
	_, y := fresh(t, b.results())
	_, want := fresh(t, both.results())
	dir, _ := fresh(t, newWorld().results())
	for name := range x {
		switch filepath.Ext(name) {
		case ".jsonl", ".csv":
			put(t, dir, name, gitUnion(t, base[name], x[name], y[name]))
		}
	}
	if v := write(t, dir, both.results()); !v.OK() {
		t.Errorf("%s", v)
	}
	same(t, folder(t, dir), want)
}

// Hosts fold away what is marked as generated: bulk, and never what people review.
func TestAttributes(t *testing.T) {
	needGit(t)
	own := t.TempDir()
	gitIn(t, own, true, "init", "-q")
	write(t, filepath.Join(own, "artifacts", "small"), newWorld().results())
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(repository, ".gitattributes")); err == nil {
		put(t, own, ".gitattributes", string(b))
	} else {
		t.Fatal(err)
	}
	for name, generated := range map[string]bool{
		"README.md": false, "experiment.yaml": false, "figures/sheet.png": false,
		"figures/sheet.decay.svg": false, ".gitattributes": false,
		"folder.jsonl": true, "cells/auc.jsonl": true, "items/auc.csv": true, "items/auc@01234567.csv": true,
		"tables/leaderboard.csv": true,
	} {
		said := gitIn(t, own, true, "check-attr", "linguist-generated", "merge", "binary", "--",
			"artifacts/small/"+name)
		if got := strings.Contains(said, "linguist-generated: set"); got != generated {
			t.Errorf("%s is marked as generated: %v\n%s", name, got, said)
		}
		if got := strings.Contains(said, "merge: union"); got != generated {
			t.Errorf("%s is merged by union: %v\n%s", name, got, said)
		}
		if got := strings.Contains(said, "binary: set"); got != strings.HasSuffix(name, ".png") {
			t.Errorf("%s is binary: %v\n%s", name, got, said)
		}
	}
}

// TestReadRevision reads the versions of a folder that git has, also of one that is gone, and nothing but
// regular files of ours.
func TestReadRevision(t *testing.T) {
	needGit(t)
	repo := t.TempDir()
	dir := filepath.Join(repo, "artifacts", "small")
	gitIn(t, repo, true, "init", "-q", "-b", "main")
	w := newWorld()
	write(t, dir, w.results())
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "tables", "link.csv")); err != nil {
		t.Fatal(err)
	}
	gitIn(t, repo, true, "add", ".")
	gitIn(t, repo, true, "commit", "-q", "-m", "x")
	if err := os.Remove(filepath.Join(dir, "tables", "link.csv")); err != nil {
		t.Fatal(err)
	}
	now, err := ReadVersion(dir)
	if err != nil {
		t.Fatal(err)
	}
	delete(now.files, attributesFile) // says nothing of results
	for _, gone := range []bool{false, true} {
		if gone {
			if err := os.RemoveAll(filepath.Join(repo, "artifacts")); err != nil {
				t.Fatal(err)
			}
		}
		was, err := ReadRevision(t.Context(), "HEAD", dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(now.files, was.files); d != "" {
			t.Error(d)
		}
		if d, err := Diff(was, now); err != nil || !d.Empty() {
			t.Errorf("%v, %v", d, err)
		}
	}
	for _, revision := range []string{"HEAD~1", "--help", "", "HEAD:artifacts"} {
		if _, err := ReadRevision(t.Context(), revision, dir); err == nil {
			t.Errorf("there is a revision %q", revision)
		}
	}
}
