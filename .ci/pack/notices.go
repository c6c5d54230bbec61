package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// notice is the name of files that a licence requires to be handed on.
var notice = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|notice|patents)([.-].*)?$|-licen[cs]e$`)

// A module is a part of the command that others wrote.
type module struct{ Name, Dir string }

// linked returns the modules that the command is linked from, the main one apart, sorted.
func linked() ([]module, error) {
	cmd := exec.Command("go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}",
		"github.com/runexp/runexp/cmd/runexp")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var list []module
	for line := range strings.Lines(string(out)) {
		if name, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			list = append(list, module{name, dir})
		}
	}
	slices.SortFunc(list, func(a, b module) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(list), nil
}

// thirdParty returns the notices of all that the command contains and others wrote: Go's library, the
// modules, and the C code in them; and what the C compiler adds, whose files are in compiler, "" if none is
// known.
func thirdParty(compiler string) ([]byte, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	modules, err := linked()
	if err != nil {
		return nil, err
	}
	goModule := module{"The Go standard library and runtime, " + runtime.Version(),
		strings.TrimSpace(string(goroot))}
	var b bytes.Buffer
	b.WriteString("runexp contains the following works of others, under these terms.\n")
	for _, m := range append([]module{goModule}, modules...) {
		files, err := notices(m, m == goModule)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s has no licence in %s", m.Name, m.Dir)
		}
		for _, f := range files {
			if err := section(&b, m, f); err != nil {
				return nil, err
			}
		}
	}
	if compiler == "" {
		return b.Bytes(), nil
	}
	zig := module{"Start-up code of zig's C compiler and the GNU C library", compiler}
	for _, f := range []string{"LICENSE", "lib/libc/glibc/LICENSES", "lib/libunwind/LICENSE.TXT"} {
		if err := section(&b, zig, f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// section writes a notice, a file of a module, with its head.
func section(b *bytes.Buffer, m module, file string) error {
	text, err := os.ReadFile(filepath.Join(m.Dir, file))
	fmt.Fprintf(b, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), m.Name, filepath.ToSlash(file),
		bytes.TrimSpace(text))
	return err
}

// notices returns the notices of a module, relative to its folder; only those of the folder itself if flat.
func notices(m module, flat bool) (list []string, err error) {
	err = filepath.WalkDir(m.Dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != m.Dir && (flat || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !notice.MatchString(d.Name()):
			return nil
		}
		rel, err := filepath.Rel(m.Dir, path)
		list = append(list, rel)
		return err
	})
	return list, err
}
