package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
)

const readme = `runexp %s, with ONNX Runtime in lib/: runs without network and without Python, on Linux x86-64 with
glibc 2.28 or newer.

    ./runexp doctor
    ./runexp new quickstart try
    ./runexp run try/quickstart.yaml
`

// writeArchive writes a .tar.gz with the command, the library next to it, and their notices, from a folder
// that .ci/deps filled, and returns its path.
func writeArchive(binary, version, libraries, out string) (string, error) {
	base := name + "-" + version + "-linux-x86_64"
	files := []file{{"README.txt", fmt.Appendf(nil, readme, version), false}}
	for _, f := range []struct {
		from, as   string
		executable bool
	}{
		{binary, "runexp", true},
		{filepath.Join(libraries, "libonnxruntime.so"), "lib/libonnxruntime.so", true},
		{filepath.Join(libraries, "LICENSE"), "lib/LICENSE", false},
		{filepath.Join(libraries, "ThirdPartyNotices.txt"), "lib/ThirdPartyNotices.txt", false},
	} {
		read, err := read(f.from, f.as, f.executable)
		if err != nil {
			return "", err
		}
		files = append(files, read)
	}
	legal, err := legalFiles("")
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for _, f := range append(files, legal...) {
		h := &tar.Header{Name: base + "/" + f.path, Mode: 0o644, Size: int64(len(f.data)), ModTime: modified}
		if f.executable {
			h.Mode = 0o755
		}
		if err := t.WriteHeader(h); err != nil {
			return "", err
		}
		if _, err := t.Write(f.data); err != nil {
			return "", err
		}
	}
	if err := t.Close(); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	path := filepath.Join(out, base+".tar.gz")
	return path, os.WriteFile(path, b.Bytes(), 0o666)
}
