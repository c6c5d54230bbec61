package ort

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnfitLibrary opens libraries that aren't fit in a process of their own, since a process can have only
// one environment.
func TestUnfitLibrary(t *testing.T) {
	if path := os.Getenv("RUNEXP_TEST_UNFIT"); path != "" {
		Use(path)
		_, err := Default()
		if err == nil {
			t.Fatal("it was opened")
		}
		t.Log(err)
		return
	}
	dir := t.TempDir()
	text := filepath.Join(dir, "text.so")
	if err := os.WriteFile(text, []byte("this is no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path, want string
	}{
		{filepath.Join(dir, "none.so"), "--onnxruntime names no ONNX Runtime"},
		{text, "is not an ONNX Runtime 1.26.0 or newer"},
	}
	old := filepath.Join(dir, "libonnxruntime.so")
	source := filepath.Join(dir, "old.c")
	// What a release from before 1.26 answers when it's asked for 1.26's interface.
	if err := os.WriteFile(source, []byte(`
static const void *api(unsigned v) { return 0; }
static const char *version(void) { return "1.19.2"; }
static struct { const void *(*api)(unsigned); const char *(*version)(void); } base = {api, version};
const char *mark = "VERS_1.19.2";
void *OrtGetApiBase(void) { return &base; }
`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", old, source).CombinedOutput(); err == nil {
		tests = append(tests,
			struct{ path, want string }{old, "is ONNX Runtime 1.19.2: version 1.26.0 or newer is needed"})
	} else {
		t.Logf("an old library isn't tried: %v %s", err, out)
	}
	for _, tt := range tests {
		cmd := exec.Command(os.Args[0], "-test.run=^TestUnfitLibrary$", "-test.v")
		cmd.Env = append(os.Environ(), "RUNEXP_TEST_UNFIT="+tt.path)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: %v\n%s", tt.path, err, out)
		}
	}
}
