package plan

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An address is planned as the file that it is fetched to, and is remembered with the places where it stands.
func TestRemotes(t *testing.T) {
	dir := t.TempDir()
	hook := func(address string) (string, error) {
		if !strings.HasPrefix(address, "https://") {
			return "", errors.New("no such scheme")
		}
		return filepath.Join(dir, filepath.Base(address)), nil
	}
	const text = `name: x
axes:
  net: {a: {path: https://h/a.onnx}, b: {path: b.onnx}, c: {path: "https://h/a.onnx"}}
stages:
  model: {uses: model/onnx, matrix: [net], with: {path: "${net.path}"}}
  photos: {uses: dataset/folder, with: {path: https://h/photos.zip}}
publish: [model, photos]
`
	p, err := Parse("x.yaml", []byte(text), ".", paperCatalog(), Overrides{Remote: hook,
		Set: []string{"photos.with.path=https://h/p.zip"}})
	if err != nil {
		t.Fatal(err)
	}
	list := p.Remotes()
	if len(list) != 2 || list[0].Address != "https://h/a.onnx" ||
		list[0].File != filepath.Join(dir, "a.onnx") || list[1].Address != "https://h/p.zip" {
		t.Fatalf("%+v", list)
	}
	places := list[0].Places
	if len(places) != 2 || places[0].Line != 3 || places[0].Col != 19 || places[1].Col != 67 {
		t.Errorf("%+v", places)
	}
	if p := list[1].Places[0]; p.Line != 0 || p.File != "--set photos.with.path=https://h/p.zip" {
		t.Errorf("%+v", p)
	}
	if got := p.Narrowed[0]; got != "photos.with.path set to https://h/p.zip" {
		t.Error(got)
	}
	out := string(p.Resolved())
	if !strings.Contains(out, "https://h/a.onnx") || strings.Contains(out, dir) {
		t.Error(out)
	}
	// What isn't fetched isn't missing, which b.onnx is.
	if ds := p.Missing(); len(ds) != 1 || !strings.Contains(ds[0].Msg, "b.onnx") || list[0].Fetched() {
		t.Errorf("%v", ds)
	}
	if err := os.WriteFile(list[0].File, nil, 0o666); err != nil || !list[0].Fetched() {
		t.Error("it isn't seen when it is there", err)
	}
	for _, c := range p.Cells {
		if c.String() == "model[net=b]" && len(p.RemotesOf(c)) != 0 {
			t.Errorf("%s reads %v", c, p.RemotesOf(c))
		}
	}
	o := Overrides{Remote: hook, Set: []string{"photos.with.path=s3://h/p.zip"}}
	if _, err := Parse("x.yaml", []byte(text), ".", paperCatalog(), o); err == nil ||
		!strings.Contains(err.Error(), "no such scheme") {
		t.Error(err)
	}
}

func TestRewrite(t *testing.T) {
	for _, c := range []struct {
		text      string
		line, col int
		want      string // "" if it can't be
	}{
		{"a: OLD\n", 1, 4, "a: NEW\n"},
		{"a: OLD # OLD\nb: OLD\n", 1, 4, "a: NEW # OLD\nb: OLD\n"},
		{"a: x\r\nb: {é: 'OLD'}\r\n", 2, 8, "a: x\r\nb: {é: 'NEW'}\r\n"},
		{"a: x\rb: \"OLD\"", 2, 4, "a: x\rb: \"NEW\""},
		{"\ufeffa: OLD", 1, 4, "\ufeffa: NEW"},
		{"a: &it OLD", 1, 4, "a: &it NEW"},
		{"a: ${x}.b # OLD", 1, 4, ""},
		{"a: |\n  OLD\n", 1, 4, ""},
		{"a: x\n", 3, 1, ""},
		{"a: OLD\n", 0, 0, ""}, // a flag's
	} {
		got, ok := Rewrite([]byte(c.text), Diag{Line: c.line, Col: c.col}, "OLD", "NEW")
		if ok != (c.want != "") || string(got) != c.want {
			t.Errorf("%q at %d:%d: %q, %v; want %q", c.text, c.line, c.col, got, ok, c.want)
		}
	}
}

// Folders of this machine aren't shown, and addresses are.
func TestWithoutFolders(t *testing.T) {
	for value, want := range map[string]string{
		"/data/nets/a.onnx":                        "…/a.onnx",
		"[/data/a.onnx, https://h/b/c.onnx]":       "[…/a.onnx, https://h/b/c.onnx]",
		"hf://org/repo@main/x.onnx#sha256=00":      "hf://org/repo@main/x.onnx#sha256=00",
		`{a: /x/y, b: "/x/z", c: 'https://h/a/b'}`: `{a: …/y, b: "…/z", c: 'https://h/a/b'}`,
		"nets/a.onnx":                              "nets/a.onnx",
	} {
		if got := withoutFolders(value); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}
