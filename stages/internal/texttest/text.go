// Package texttest provides tests with small text classifiers of random weights, texts in their tokens, and
// what independent implementations compute of them in double precision.
//
// testdata/nets.py exports networks of the library transformers as NAME.EXPORTER.onnx.gz, where all exports
// of a network have the same weights, and writes NAME.jsonl, eight texts of 3 to 30 tokens. own_test.go
// writes three more: fixed, a BERT of int32 inputs of 32 tokens; bag, which reads ids alone, without a mask;
// and bytes, which reads 64 bytes. testdata/goldens.py computes goldens.npz, and says what each array is.
package texttest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/stagetest"
)

// A Text is a line of a network's texts.
type Text struct {
	IDs       []int64  `json:"ids"`
	Types     []int64  `json:"types"`
	Special   []int64  `json:"special"`
	Tokens    []string `json:"tokens"`
	Offsets   [][2]int `json:"offsets"`
	Text      string   `json:"text"`
	Label     int      `json:"label"`
	Rationale [][2]int `json:"rationale"` // the characters that a person would mark
}

// Folder returns the folder of the networks, their texts and goldens.
func Folder(t testing.TB) string {
	t.Helper()
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "stages", "internal", "texttest", "testdata")
}

// Files returns the names of all files of networks, such as bert.trace.
func Files(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(Folder(t), "*.onnx.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no networks: ", err)
	}
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(p), ".onnx.gz")
	}
	slices.Sort(paths)
	return paths
}

// Network returns the name of the network in a file.
func Network(file string) string {
	name, _, _ := strings.Cut(file, ".")
	return name
}

// ONNX returns a file of a network.
func ONNX(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(Folder(t), file+".onnx.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	b, err = io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Path returns the path of a copy of a network's file.
func Path(t testing.TB, file string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), file+".onnx")
	if err := os.WriteFile(path, ONNX(t, file), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TokensPath returns the path of the texts in a network's tokens, as dataset/tokens reads them.
func TokensPath(t testing.TB, network string) string {
	t.Helper()
	return filepath.Join(Folder(t), network+".jsonl")
}

// Texts returns the texts in a network's tokens.
func Texts(t testing.TB, network string) (out []Text) {
	t.Helper()
	b, err := os.ReadFile(TokensPath(t, network))
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var x Text
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

// Goldens returns the arrays of a network by name, without the name of the network.
func Goldens(t testing.TB, network string) map[string]npy.Array {
	t.Helper()
	out := map[string]npy.Array{}
	for name, a := range golden.Arrays(t, filepath.Join(Folder(t), "goldens.npz")) {
		if of, rest, _ := strings.Cut(name, "."); of == network {
			out[rest] = a
		}
	}
	return out
}
