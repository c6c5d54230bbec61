package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"os"
	"testing"
)

func writeZip(t *testing.T, path, name, content string) {
	t.Helper()
	writeZips(t, path, map[string]string{name: content})
}

func writeZips(t *testing.T, path string, files map[string]string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	z := zip.NewWriter(f)
	for name, content := range files {
		w, err := z.Create(name)
		must(t, err)
		_, err = io.WriteString(w, content)
		must(t, err)
	}
	must(t, z.Close())
}

func writeTar(t *testing.T, path, name, content string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	g := gzip.NewWriter(f)
	w := tar.NewWriter(g)
	must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}))
	_, err = io.WriteString(w, content)
	must(t, err)
	must(t, w.Close())
	must(t, g.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
