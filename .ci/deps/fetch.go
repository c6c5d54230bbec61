package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A fetcher is the command of an installed package manager.
type fetcher []string

func (f fetcher) String() string { return strings.Join(f, " ") }

func (f fetcher) isNPM() bool { return f[0] == "npm" }

// of returns the package from which it takes a library.
func (f fetcher) of(l library) source {
	if f.isNPM() {
		return l.npm
	}
	return l.pip
}

// fetchers lists the available package managers that have a library. The wheel is a fifth of the size of the
// npm package.
func fetchers(l library) []fetcher {
	var found []fetcher
	for _, f := range []fetcher{{"pip3"}, {"pip"}, {"python3", "-m", "pip"}, {"python", "-m", "pip"},
		{"npm"}} {
		if _, err := exec.LookPath(f[0]); err != nil || f.of(l).pack == "" {
			continue
		}
		// Python may lack pip, or the command may be a broken shim of a version manager.
		if exec.Command(f[0], append(f[1:len(f):len(f)], "--version")...).Run() != nil {
			continue
		}
		if len(found) > 0 && !f.isNPM() {
			continue // another name of the same pip
		}
		found = append(found, f)
	}
	return found
}

// download downloads the package to dir and returns its file.
func (f fetcher) download(ctx context.Context, dir string, s source) (string, error) {
	args := []string{"download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
		"--only-binary=:all:",
		"--implementation", "cp", "--python-version", "3.12", "--abi", "cp312", "--platform", s.platform,
		"--dest", dir, s.pack + "==" + s.version}
	if f.isNPM() {
		args = []string{"pack", "--silent", "--pack-destination", dir, s.pack + "@" + s.version}
	}
	cmd := exec.CommandContext(ctx, f[0], append(f[1:len(f):len(f)], args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", f, err, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{"*.whl", "*.tgz"} {
		if m, _ := filepath.Glob(filepath.Join(dir, pattern)); len(m) > 0 {
			return m[0], nil
		}
	}
	return "", fmt.Errorf("%s downloaded no package", f)
}

// extract extracts the library from a wheel or an npm package, and the files beside it.
func (f fetcher) extract(archive, to string, l library) error {
	if f.isNPM() {
		return extractTar(archive, to, l.npm.file)
	}
	return extractZip(archive, to, l.pip.file, l.beside)
}

func extractZip(archive, to, prefix string, beside []string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer z.Close()
	found := false
	for _, f := range z.File {
		inside := strings.TrimPrefix(f.Name, "onnxruntime/")
		path := filepath.Join(filepath.Dir(to), inside)
		switch {
		// such as libonnxruntime.so.1.32.0 or libonnxruntime.1.32.0.dylib
		case strings.HasPrefix(f.Name, prefix):
			path, found = to, true
		case slices.Contains(beside, filepath.Base(f.Name)):
			path = filepath.Join(filepath.Dir(to), filepath.Base(f.Name))
		case !slices.Contains(notices, inside):
			continue
		}
		r, err := f.Open()
		if err == nil {
			err = errors.Join(write(path, r), r.Close())
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("no library in %s", filepath.Base(archive))
	}
	return nil
}

// notices are the files that who hands the library on must hand on too. The npm package lacks them.
var notices = []string{"LICENSE", "ThirdPartyNotices.txt"}

func extractTar(archive, to, suffix string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("no library in %s", filepath.Base(archive))
		}
		if err != nil {
			return err
		}
		if strings.HasSuffix(h.Name, suffix) {
			return write(to, t)
		}
	}
}

func write(path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
