package stages

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistaken names what people have in place of a file, each by the bytes that its program writes.
func TestMistaken(t *testing.T) {
	zipOf := func(name string) string {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		if _, err := w.Create(name); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	header := `{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	safetensors := string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header
	for _, tt := range []struct{ name, head, want string }{
		{"LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:00ff\nsize 2400\n",
			"a pointer of Git LFS to a file of 2400 bytes, the file itself isn't here: git lfs pull " +
				"fetches it"},
		{"LFS with Windows' lines", "version https://git-lfs.github.com/spec/v1\r\noid sha256:0\r\nsize " +
			"7\r\n",
			"to a file of 7 bytes"},
		{"git-annex", "/annex/objects/SHA256E-s31390--f50d.onnx\n", "git annex get"},
		{"a page", "\n<!DOCTYPE html>\n<html lang=en>", "a web page"},
		{"a page with a mark", "\xef\xbb\xbf<HTML><head>", "a web page"},
		{"a page with a comment", "<!-- made by -->\n<html>", "a web page"},
		{"S3's message", `<?xml version="1.0"?>` + "\n<Error><Code>AccessDenied</Code>", "server's message"},
		{"OpenVINO", `<?xml version="1.0"?>` + "\n" + `<net name="a" version="11">`, "OpenVINO"},
		{"JSON", `{"error": "Repository  not found"}`,
			`message in place of a file: "{\"error\": \"Repository not`},
		{"PyTorch", zipOf("archive/data.pkl"), "torch.onnx.export"},
		{"PyTorch, newer", zipOf("resnet/data.pkl"), "torch.onnx.export"},
		{"Keras", zipOf("metadata.json"), "Keras"},
		{"an archive", zipOf("net.onnx"), "a .zip archive"},
		{"Keras, older", "\x89HDF\r\n\x1a\n\x00", "Keras"},
		{"PyTorch, older", "\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "pickle"},
		{"safetensors", safetensors, "safetensors"},
		{"TensorFlow Lite", "\x1c\x00\x00\x00TFL3\x14", "TensorFlow Lite"},
		{"TensorRT", "ftrt\x00\x00", "TensorRT"},
		{"ONNX Runtime", "\x28\x00\x00\x00ORTM", "ONNX Runtime's own format"},
		{"gzip", "\x1f\x8b\x08", "gzip"},
		{"tar", strings.Repeat("\x00", 257) + "ustar\x0000", "a tar archive"},
		{"a picture", "\x89PNG\r\n\x1a\n", "a PNG picture"},
	} {
		err := Mistaken([]byte(tt.head))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	for name, head := range map[string]string{
		"nothing": "", "a model": "\x08\x08\x12\x07pytorch", "a text": "cat\ndog\n", "a short file": "PK",
		"numbers": "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09", "a word": "version 2 of the names",
	} {
		if err := Mistaken([]byte(head)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPointersAreNotOpened holds that whatever is opened, pointers are errors with the way on.
func TestPointersAreNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cat.png")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("version https://git-lfs.github.com/spec/v1\noid sha256:00ff\nsize 2400\n")
	for _, open := range []func() error{
		func() error { _, err := OpenFile(path); return err },
		func() error { _, err := ReadFile(path, 1<<20); return err },
	} {
		err := open()
		if !errors.Is(err, ErrPointer) || !strings.Contains(err.Error(), "git lfs pull fetches it") ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%v", err)
		}
	}
	for _, text := range []string{"version 1\n", "", strings.Repeat("version https://git-lfs", 100)} {
		write(text)
		if b, err := ReadFile(path, 1<<20); err != nil || string(b) != text {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzMistaken(f *testing.F) {
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(_ *testing.T, b []byte) { _ = Mistaken(b) })
}
