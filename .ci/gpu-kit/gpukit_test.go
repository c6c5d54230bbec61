package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

// TestPiecesFitNextToTheProject holds that a piece and what git tracks stay under 64 MiB together.
func TestPiecesFitNextToTheProject(t *testing.T) {
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		stagetest.Lacks(t, "git doesn't list the project's files: "+err.Error())
	}
	total := int64(pieceSize)
	for _, name := range strings.Split(strings.Trim(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil { // it isn't deleted
			total += info.Size()
		}
	}
	if total >= 64<<20 {
		t.Errorf("a piece and the project have %d bytes, of %d", total, 64<<20)
	}
}

// A sent kit is a folder of small sets, with a stub that prints its arguments and a file of its set.
type sentKit struct{ dir, home string }

func makeKit(t *testing.T) sentKit {
	t.Helper()
	if _, err := exec.LookPath("xz"); err != nil {
		stagetest.Lacks(t, "there is no xz")
	}
	k := sentKit{t.TempDir(), t.TempDir()}
	r := rand.NewChaCha8([32]byte{29})
	noise := make([]byte, 10_000)
	r.Read(noise)
	stub := "#!/bin/sh\necho \"$@\"\nwc -c <$(dirname $0)/noise\n"
	var sets []set
	for _, name := range []string{"webgpu", "cuda"} {
		s, err := pack(name, []file{{path: "card", content: []byte(stub)}, {path: "noise", content: noise}},
			k.dir, 4000)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.pieces) != 3 {
			t.Errorf("%s has %d pieces, not 3", name, len(s.pieces))
		}
		for _, p := range s.pieces {
			if info, err := os.Stat(filepath.Join(k.dir, p.name)); err != nil || info.Size() > 4000 {
				t.Errorf("%s: %v, %v", p.name, info.Size(), err)
			}
		}
		sets = append(sets, s)
	}
	if err := describe(sets, k.dir); err != nil {
		t.Fatal(err)
	}
	return k
}

// run runs the kit with little in its environment, and returns what it prints.
func (k sentKit) run(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(k.dir, "run"), args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + k.home, "GPU_KIT=" + k.home}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestRunJoinsPieces(t *testing.T) {
	k := makeKit(t)
	for range 2 { // unpacked, and as it was unpacked
		out, err := k.run("--rehearse", "all", "out", "100")
		if err != nil || !strings.HasPrefix(out, "run --rehearse all out ") ||
			!strings.HasSuffix(out, "\n10000\n") {
			t.Errorf("got %q, %v", out, err)
		}
	}
	content, err := os.ReadFile(filepath.Join(k.home, "cuda", "noise"))
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 10_000)
	rand.NewChaCha8([32]byte{29}).Read(want)
	if !bytes.Equal(content, want) {
		t.Error("the unpacked file has other bytes")
	}
	readme, err := os.ReadFile(filepath.Join(k.dir, "README"))
	for piece, do := range map[string]string{"webgpu.01": "keep", "webgpu.03": "webgpu OUT 540",
		"cuda.02": "keep", "cuda.03": "cuda OUT 540"} {
		if !strings.Contains(string(readme), piece+": "+filepath.Join(k.dir, "run")+" "+do+"\n") {
			t.Errorf("README doesn't name %s: %v", piece, err)
		}
	}
}

// TestPiecesComeOneByOne sends a piece a call, after which it is gone from the folder of run.
func TestPiecesComeOneByOne(t *testing.T) {
	k := makeKit(t)
	sent := sentKit{t.TempDir(), k.home}
	send := func(names ...string) {
		for _, name := range names {
			b, err := os.ReadFile(filepath.Join(k.dir, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(sent.dir, name), b, 0o777)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	send("run", "sums", "webgpu.01")
	if out, err := sent.run("webgpu", "out"); err == nil ||
		out != "gpu-kit: the set webgpu lacks webgpu.02 webgpu.03: send each with \"run keep\"\n" {
		t.Errorf("got %q, %v", out, err)
	}
	os.Remove(filepath.Join(sent.dir, "webgpu.01"))
	send("webgpu.02")
	if out, err := sent.run("keep"); err != nil ||
		out != "webgpu: missing: webgpu.03\ncuda: missing: cuda.01 cuda.02 cuda.03\n" {
		t.Errorf("got %q, %v", out, err)
	}
	os.Remove(filepath.Join(sent.dir, "webgpu.02"))
	send("webgpu.03")
	out, err := sent.run("webgpu", "out", "100")
	if err != nil || !strings.HasPrefix(out, "run webgpu out ") {
		t.Errorf("got %q, %v", out, err)
	}
	out, err = sent.run("cuda", "out")
	if err == nil || !strings.Contains(out, "the set cuda lacks cuda.01") {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestRunRefusesOtherBytes(t *testing.T) {
	k := makeKit(t)
	path := filepath.Join(k.dir, "webgpu.02")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[100] ^= 1
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := k.run("webgpu", "out"); err == nil || !strings.Contains(out, "FAILED") {
		t.Errorf("got %q, %v", out, err)
	}
}
