package ort

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/runexp/runexp/stages/stagetest"
)

// TestKeptHandlers has a library put handlers in the place of Go's when it is opened, as the CUDA provider
// does, which hand on what they get without Go's stack. In a process of its own, Go still gets the signals,
// those that nobody had asked for until then too.
func TestKeptHandlers(t *testing.T) {
	if path := os.Getenv("RUNEXP_TEST_HANDLERS"); path != "" {
		got := make(chan os.Signal, 1)
		signal.Notify(got, os.Interrupt)
		for range 2 { // the library is opened once, and its function called twice
			if err := keepingHandlers(func() error {
				_,
					err := open(Library{Path: path})
				return err
			}); err == nil {
				t.Fatal("it was opened")
			}
		}
		signal.Notify(got, syscall.SIGTERM)
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			if err := syscall.Kill(os.Getpid(), s); err != nil {
				t.Fatal(err)
			}
			select {
			case <-got:
			case <-time.After(10 * time.Second):
				t.Fatalf("%v didn't arrive", s)
			}
		}
		return
	}
	library := filepath.Join(t.TempDir(), "libonnxruntime.so")
	source := library + ".c"
	if err := os.WriteFile(source, []byte(`
#include <signal.h>
static struct sigaction before[32];
static void handle(int s, siginfo_t *i, void *c) {
	if (before[s].sa_sigaction && before[s].sa_sigaction != handle) before[s].sa_sigaction(s, i, c);
}
static const void *api(unsigned v) { return 0; }
static const char *version(void) { return "1.0.0"; }
static struct { const void *(*api)(unsigned); const char *(*version)(void); } base = {api, version};
void *OrtGetApiBase(void) {
	struct sigaction a = {0};
	a.sa_sigaction = handle;
	a.sa_flags = SA_SIGINFO;
	for (int s = 1; s < 32; s++)
		if (s != SIGKILL && s != SIGSTOP) sigaction(s, &a, &before[s]);
	return &base;
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", library,
		source).CombinedOutput(); err != nil {
		stagetest.Lacks(t, "no C compiler: "+err.Error()+string(out))
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKeptHandlers$", "-test.v")
	cmd.Env = append(os.Environ(), "RUNEXP_TEST_HANDLERS="+library)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
