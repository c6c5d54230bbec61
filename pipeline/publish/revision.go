package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Version of a review folder is its files, from the disk or from a git revision.
type Version struct {
	Name  string // for people
	dir   string
	files map[string][]byte
}

// ReadVersion reads the review folder dir as it is.
func ReadVersion(dir string) (*Version, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	files, err := readFolder(dir, isComplete)
	return &Version{dir, dir, files}, err
}

// ReadRevision reads the review folder dir as a git revision has it. Only what git stores is read: none of
// the repository's hooks, filters or other programs runs.
func ReadRevision(ctx context.Context, revision, dir string) (*Version, error) {
	tree, err := treeAt(ctx, revision, dir)
	if err != nil {
		return nil, err
	}
	list, err := git(ctx, dir, nil, "ls-tree", "-r", "-l", "-z", "--full-tree", tree)
	if err != nil {
		return nil, err
	}
	var names []string
	var wanted bytes.Buffer
	for entry := range strings.SplitSeq(string(list), "\x00") {
		// <mode> blob <object> <size>\t<name>
		about, name, _ := strings.Cut(entry, "\t")
		f := strings.Fields(about)
		if len(f) != 4 || !strings.HasPrefix(f[0], "100") || rendererOf(name) == nil {
			continue
		}
		if size, err := strconv.Atoi(f[3]); err == nil && size <= readLimit {
			names = append(names, name)
			fmt.Fprintln(&wanted, f[2])
		}
	}
	blobs, err := git(ctx, dir, &wanted, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	v := &Version{fmt.Sprintf("%s at %s", dir, revision), dir, map[string][]byte{}}
	for _, name := range names {
		head, rest, _ := bytes.Cut(blobs, []byte("\n")) // <object> blob <size>
		f := strings.Fields(string(head))
		size, err := strconv.Atoi(f[max(len(f)-1, 0)])
		if err != nil || size < 0 || size >= len(rest) {
			return nil, fmt.Errorf("git has no content of %s at %s", filepath.Join(dir, name), revision)
		}
		v.files[name], blobs = rest[:size], rest[size+1:]
	}
	return v, nil
}

// FoldersAt lists the review folders below dir, by name: those that a revision has, and those on disk.
func FoldersAt(ctx context.Context, revision, dir string) (committed, existing []string, err error) {
	tree, err := treeAt(ctx, revision, dir)
	if err != nil {
		return nil, nil, err
	}
	list, err := git(ctx, dir, nil, "ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree", tree)
	if err != nil {
		return nil, nil, err
	}
	for name := range strings.SplitSeq(string(list), "\x00") {
		if folder, ok := strings.CutSuffix(name, "/cells"); ok && !strings.Contains(folder, "/") {
			committed = append(committed, filepath.Join(dir, folder))
		}
	}
	cells, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*", "cells"))
	for _, path := range cells {
		existing = append(existing, filepath.Dir(path))
	}
	return committed, existing, err
}

func escapeGlob(dir string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// treeAt returns the name of the tree that a folder is in a revision.
func treeAt(ctx context.Context, revision, dir string) (string, error) {
	base := existing(dir)
	rel, err := filepath.Rel(base, dir)
	if err != nil {
		return "", err
	}
	commit, err := git(ctx, dir, nil, "rev-parse", "--verify", "--quiet", "--end-of-options",
		revision+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%q is neither a folder nor a revision of git: %w", revision, err)
	}
	of := strings.TrimSpace(string(commit)) + ":./" + filepath.ToSlash(rel)
	tree, err := git(ctx, dir, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", of)
	if err != nil {
		return "", fmt.Errorf("revision %s has no folder %s: %w", revision, dir, err)
	}
	return strings.TrimSpace(string(tree)), nil
}

// existing returns a folder, or the nearest one around it that exists.
func existing(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// git runs git in the repository around a folder, without what a repository may have it run: hooks, a
// file-system monitor, a pager, a fetch of missing objects.
func git(ctx context.Context, dir string, stdin io.Reader, args ...string) ([]byte, error) {
	safe := []string{"-C", existing(dir), "--no-pager", "--no-replace-objects", "-c", "core.fsmonitor=false",
		"-c", "core.hooksPath=" + os.DevNull, "-c", "protocol.allow=never"}
	cmd := exec.CommandContext(ctx, "git", slices.Concat(safe, args)...)
	cmd.Env = append(os.Environ(), "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C")
	cmd.Stdin = stdin
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return nil, fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
	} else if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out, nil
}
