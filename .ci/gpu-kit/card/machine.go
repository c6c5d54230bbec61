package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A machine is a card, its drivers, and PyTorch next to them.
type machine struct {
	kit     string
	temp    string
	card    string   // as nvidia-smi reports it, or why it doesn't
	python  string   // the command, or nothing
	torch   string   // its version, or why there is none
	imports bool     // Python imports PyTorch
	onCard  bool     // which uses the card
	nvidia  []string // folders of PyTorch's CUDA libraries
	cuda    bool     // the set cuda is there
	vulkan  []string // what Vulkan's loader needs to be told
}

// look finds out in at most two minutes.
func look(ctx context.Context, kit string) machine {
	m := machine{kit: kit, temp: filepath.Join(os.TempDir(), "gpu-kit-run")}
	_ = os.MkdirAll(m.temp, 0o777) // a step would report it
	if _, err := os.Stat(filepath.Join(kit, "cuda", "libonnxruntime.so")); err == nil {
		m.cuda = true
	}
	var err error
	if m.card, err = output(ctx, 20*time.Second, nil, "nvidia-smi",
		"--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"); err != nil {
		m.card = "unknown: nvidia-smi says " + oneLine(err.Error())
		if errors.Is(err, exec.ErrNotFound) {
			m.card = "unknown: there is no nvidia-smi"
		}
	}
	m.vulkan = vulkan(ctx, kit)
	m.findTorch(ctx)
	return m
}

// output returns what a command prints, without blank lines around it. Its error has the last line that the
// command prints to stderr.
func output(ctx context.Context, limit time.Duration, env []string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	group(cmd)
	said := &tail{to: io.Discard}
	cmd.Stderr = said
	b, err := cmd.Output()
	if err != nil && said.last != "" {
		err = errors.New(said.last)
	}
	return strings.TrimSpace(string(b)), err
}

// torchTells prints the folders of CUDA's libraries that come with PyTorch, its version, and whether it sees
// a card.
const torchTells = `
import glob, importlib.util, os
for name in "nvidia", "torch":
    spec = importlib.util.find_spec(name)
    for root in spec.submodule_search_locations if spec else []:
        for lib in sorted({os.path.dirname(f) for f in glob.glob(root + "/**/lib*.so*", recursive=True)}):
            print("folder", lib)
import torch
print("torch", torch.__version__, "with CUDA", torch.version.cuda, flush=True)
print("card", torch.cuda.is_available(), flush=True)
`

func (m *machine) findTorch(ctx context.Context) {
	m.python = os.Getenv("PYTHON")
	if m.python == "" {
		m.python = "python3"
	}
	if _, err := exec.LookPath(m.python); err != nil {
		m.torch = "not there: there is no " + m.python
		m.python = ""
		return
	}
	out, err := output(ctx, 90*time.Second, nil, m.python, "-c", torchTells)
	for _, line := range strings.Split(out, "\n") {
		switch name, rest, _ := strings.Cut(line, " "); name {
		case "folder":
			m.nvidia = append(m.nvidia, rest)
		case "torch":
			m.torch, m.imports = rest, true
		case "card":
			m.onCard = rest == "True"
		}
	}
	switch {
	case !m.imports:
		m.torch = fmt.Sprintf("not there: %s can't import it (%v)", m.python, err)
	case !m.onCard:
		m.torch += ", which sees no card"
	}
}

// torchRuns reports whether PyTorch can be measured.
func (m machine) torchRuns(rehearse bool) bool { return m.onCard || rehearse && m.imports }

// torchDevice is where PyTorch computes: on the processor only in a rehearsal.
func (m machine) torchDevice(rehearse bool) string {
	if rehearse && !m.onCard {
		return "cpu"
	}
	return "cuda"
}

func (m machine) facts() []fact {
	return []fact{{"card", m.card}, {"PyTorch", m.torch}}
}

// env returns what a step of a class, or of PyTorch, needs to know.
func (m machine) env(class string) []string {
	path := os.Getenv("LD_LIBRARY_PATH")
	join := func(folders ...string) string {
		return "LD_LIBRARY_PATH=" + strings.Trim(strings.Join(folders, ":")+":"+path, ":")
	}
	switch set := filepath.Join(m.kit, class); class {
	case "cuda":
		return []string{"ONNXRUNTIME_LIB=" + filepath.Join(set, "libonnxruntime.so"),
			join(append([]string{set}, m.nvidia...)...)}
	case "webgpu":
		env := []string{"ONNXRUNTIME_LIB=" + filepath.Join(set, "libonnxruntime.so"),
			"XDG_RUNTIME_DIR=" + m.temp} // without which the loader prints warnings
		for _, v := range m.vulkan {
			if folder, ok := strings.CutPrefix(v, "LD_LIBRARY_PATH="); ok {
				v = join(folder)
			}
			env = append(env, v)
		}
		return env
	}
	wheels, _ := filepath.Glob(filepath.Join(m.kit, "webgpu", "python", "*.whl"))
	return []string{"PYTHONPATH=" + strings.Join(append(wheels, os.Getenv("PYTHONPATH")), ":")}
}

// vulkan returns the variables by which the library finds Vulkan's loader, and the loader NVIDIA's driver,
// where neither is installed as usual.
func vulkan(ctx context.Context, kit string) (env []string) {
	if out, err := output(ctx, 10*time.Second, nil, "ldconfig", "-p"); err != nil ||
		!strings.Contains(out, "libvulkan.so.1") {
		env = append(env, "LD_LIBRARY_PATH="+filepath.Join(kit, "webgpu", "vulkan"))
	}
	if os.Getenv("VK_DRIVER_FILES") != "" || runtime.GOOS != "linux" {
		return env
	}
	for _, usual := range []string{"/etc", "/usr/share", "/usr/local/share"} {
		if found, _ := filepath.Glob(usual + "/vulkan/icd.d/nvidia*.json"); len(found) > 0 {
			return env
		}
	}
	// Containers get the driver in a folder of its own.
	for _, pattern := range []string{"/usr/local/nvidia/share/vulkan/icd.d/*.json",
		"/opt/nvidia/share/vulkan/icd.d/*.json"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return append(env, "VK_DRIVER_FILES="+found[0])
		}
	}
	return env
}
