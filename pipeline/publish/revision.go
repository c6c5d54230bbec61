package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Version is the files of a review folder, from disk or from a git revision.
type Version struct {
	Name  string // for people
	dir   string
	files map[string][]byte
}

// ReadVersion reads the review folder dir from disk.
func ReadVersion(dir string) (*Version, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	files, err := readFolder(dir, isComplete)
	return &Version{dir, dir, files}, err
}

// Match returns the names of the files that a pattern of [path.Match] matches, sorted.
func (v *Version) Match(pattern string) (names []string) {
	for name := range v.files {
		if ok, _ := path.Match(pattern, name); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// File returns the content of a file, nil for none.
func (v *Version) File(name string) []byte { return v.files[name] }

// ReadRevision reads the review folder dir from a git revision. It runs no hook, filter or other program
// that the repository configures.
func ReadRevision(ctx context.Context, revision, dir string) (*Version, error) {
	tree, err := treeAt(ctx, revision, dir)
	if err != nil {
		return nil, err
	}
	list, err := git(ctx, dir, nil, "ls-tree", "-r", "-l", "-z", "--full-tree", tree)
	if err != nil {
		return nil, err
	}
	t := tally{dir: fmt.Sprintf("%s at %s", dir, revision)}
	var names []string
	var wanted bytes.Buffer
	for entry := range strings.SplitSeq(string(list), "\x00") {
		// <mode> blob <object> <size>\t<name>
		about, name, _ := strings.Cut(entry, "\t")
		f := strings.Fields(about)
		if len(f) != 4 || !strings.HasPrefix(f[0], "100") || rendererOf(name) == nil {
			continue
		}
		size, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("git has no content of %s at %s%s", filepath.Join(dir, name), revision,
				incomplete(ctx, dir))
		}
		if err := t.size(name, size); err != nil {
			return nil, err
		}
		names = append(names, name)
		fmt.Fprintln(&wanted, f[2])
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
			return nil, fmt.Errorf("git has no content of %s at %s%s", filepath.Join(dir, name), revision,
				incomplete(ctx, dir))
		}
		v.files[name], blobs = rest[:size], rest[size+1:]
		if err := t.content(name, v.files[name]); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// FoldersAt lists the review folders in dir: those that a revision has, and those on disk.
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

// treeAt returns the name of a folder's tree in a revision.
func treeAt(ctx context.Context, revision, dir string) (string, error) {
	base := existing(dir)
	rel, err := filepath.Rel(base, dir)
	if err != nil {
		return "", err
	}
	commit, err := git(ctx, dir, nil, "rev-parse", "--verify", "--quiet", "--end-of-options",
		revision+"^{commit}")
	if err != nil {
		const text = "%q is neither a folder nor a revision of git%s%s"
		return "", fmt.Errorf(text, revision, unlessQuiet(err), incomplete(ctx, dir))
	}
	of := strings.TrimSpace(string(commit)) + ":./" + filepath.ToSlash(rel)
	tree, err := git(ctx, dir, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", of)
	if err != nil {
		return "", fmt.Errorf("revision %s has no folder %s%s", revision, dir, unlessQuiet(err))
	}
	return strings.TrimSpace(string(tree)), nil
}

// unlessQuiet returns git's message after a colon, "" for an unknown name, of which git says nothing.
func unlessQuiet(err error) string {
	if errors.As(err, new(*exec.ExitError)) {
		return ""
	}
	return ": " + err.Error()
}

// incomplete returns the end of a message about a repository that lacks a part of its history, "" for any
// other.
func incomplete(ctx context.Context, dir string) string {
	if shallow, err := git(ctx, dir, nil, "rev-parse", "--is-shallow-repository"); err == nil &&
		strings.TrimSpace(string(shallow)) == "true" {
		return ": this clone is shallow, and has the latest commits alone; \"git fetch --unshallow\" " +
			"fetches the rest"
	}
	if filter, err := git(ctx, dir, nil, "config", "--get-regexp", `^remote\..*\.promisor$`); err == nil &&
		len(filter) > 0 {
		return ": this clone is partial, and hasn't got all files; \"git checkout\" or \"git show\" of it " +
			"fetches them"
	}
	return ""
}

// existing returns dir if it is a folder, or else the nearest parent that exists.
func existing(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// outLimit is how many bytes git may print: the files of a folder with their headers, or the names in a
// tree, of which even a small repository may have any number.
const outLimit = folderLimit + 16<<20

// limited returns the output of a command. It stops a command that prints more than outLimit.
func limited(cmd *exec.Cmd) ([]byte, error) {
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(out, outLimit+1))
	if len(b) > outLimit {
		err = cmp.Or(err, fmt.Errorf("it prints more than %d bytes: no review folder has so many", outLimit))
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		exit.Stderr = messages.Bytes()
	}
	return b, err
}

// git runs git in the repository of a folder, without the programs that a repository may configure: hooks, a
// file-system monitor, a pager, the fetch of missing objects.
func git(ctx context.Context, dir string, stdin io.Reader, args ...string) ([]byte, error) {
	safe := []string{"-C", existing(dir), "--no-pager", "--no-replace-objects", "-c", "core.fsmonitor=false",
		"-c", "core.hooksPath=" + os.DevNull, "-c", "protocol.allow=never"}
	cmd := exec.CommandContext(ctx, "git", slices.Concat(safe, args)...)
	cmd.Env = append(os.Environ(), "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C")
	cmd.Stdin = stdin
	out, err := limited(cmd)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return nil, fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
	} else if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out, nil
}
