package gpu

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

// TestMain makes the test's program one that asks drivers, if it's called as one.
func TestMain(m *testing.M) {
	ask := map[string]func() ([]Adapter, error){"ask-vulkan": Vulkan, "ask-cuda": CUDA}[os.Args[0]]
	if ask == nil {
		os.Exit(m.Run())
	}
	list, err := ask()
	var told answer
	if told.List = list; err != nil && !errors.As(err, &told.Missing) {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		panic(err)
	}
}

type answer struct {
	List    []Adapter
	Missing Missing
}

// asked returns what drivers tell a process whose loader finds libraries in a folder alone.
func asked(t *testing.T, name, folder, state string) answer {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: exe, Args: []string{name}}
	cmd.Env = []string{"LD_LIBRARY_PATH=" + folder, "STATE=" + state}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var told answer
	if err := json.Unmarshal(out, &told); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return told
}

// compile makes a library of C, with options such as those that link it.
func compile(t *testing.T, library, source string, options ...string) {
	t.Helper()
	if err := os.WriteFile(library+".c", []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-shared", "-fPIC", "-o", library, library + ".c"}, options...)
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		stagetest.Lacks(t, "no C compiler: "+err.Error()+string(out))
	}
}

// vulkanStandIn has, in the state "two", an integrated GPU and then a discrete one, whose driver is of Vulkan
// 1.1 and doesn't tell its name.
const vulkanStandIn = `
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
static int is(const char *state) { return !strcmp(getenv("STATE"), state); }
static int create(const void *info, const void *none, void **instance) {
	*instance = (void *)1;
	return is("no driver") ? -9 : 0;
}
static void destroy(void *instance, const void *none) {}
static int enumerate(void *instance, uint32_t *n, void **devices) {
	*n = is("two") ? 2 : 0;
	for (uintptr_t i = 0; i < *n; i++) devices[i] = (void *)(i + 1);
	return 0;
}
static void properties(void *device, char *p) {
	int first = device == (void *)1;
	*(uint32_t *)(p + 32) = first ? 1 : 2;
	strcpy(p + 36, first ? "Stand-in Integrated" : "Stand-in Discrete");
	char *driver = *(char **)(p + 8);
	if (!first) return;
	strcpy(driver + 20, "Stand-in");
	strcpy(driver + 276, "1.2.3");
}
static void memory(void *device, char *p) {
	struct { uint64_t size, flags; } heaps[3] = {{256 << 20, 1}, {8ull << 30, 1}, {64ull << 30, 0}};
	if (device == (void *)1) heaps[1].size = 512 << 20;
	*(uint32_t *)(p + 4 + 32 * 8) = 3;
	memcpy(p + 8 + 32 * 8, heaps, sizeof heaps);
}
void *vkGetInstanceProcAddr(void *instance, const char *name) {
	if (!strcmp(name, "vkCreateInstance")) return create;
	if (!strcmp(name, "vkDestroyInstance")) return destroy;
	if (!strcmp(name, "vkEnumeratePhysicalDevices")) return enumerate;
	if (!strcmp(name, "vkGetPhysicalDeviceProperties2")) return properties;
	if (!strcmp(name, "vkGetPhysicalDeviceMemoryProperties")) return memory;
	return 0;
}
`

// The discrete GPU comes first, as Dawn takes it first; memory is the device's largest heap.
func TestVulkan(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: Vulkan is asked on Linux alone")
	}
	dir := t.TempDir()
	compile(t, filepath.Join(dir, "libvulkan.so.1"), vulkanStandIn)
	for state, want := range map[string]answer{
		"no driver":  {Missing: NoDriver},
		"no adapter": {Missing: NoAdapter},
		"two": {List: []Adapter{
			{Name: "Stand-in Discrete", Memory: 8 << 30},
			{Name: "Stand-in Integrated", Driver: "Stand-in 1.2.3", Memory: 512 << 20},
		}},
	} {
		if got := asked(t, "ask-vulkan", dir, state); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", state, got, want)
		}
	}
	compile(t, filepath.Join(dir, "libvulkan.so.1"), "int nothing;")
	if got := asked(t, "ask-vulkan", dir, "two"); got.Missing != NoLoader {
		t.Errorf("a library that isn't Vulkan's: got %+v", got)
	}
}

const cudaStandIn = `
#include <stdlib.h>
#include <string.h>
static int is(const char *state) { return !strcmp(getenv("STATE"), state); }
int cuInit(unsigned flags) { return is("no adapter") ? 100 : is("mismatch") ? 803 : 0; }
int cuDriverGetVersion(int *v) { *v = 13010; return 0; }
int cuDeviceGetCount(int *n) { *n = 2; return 0; }
int cuDeviceGet(int *device, int i) { *device = i + 5; return 0; }
int cuDeviceGetName(char *name, int n, int device) { strcpy(name, device == 5 ? "A" : "B"); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int device) { *n = (size_t)device << 30; return 0; }
`

func TestCUDA(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: CUDA is for Linux alone")
	}
	dir := t.TempDir()
	compile(t, filepath.Join(dir, "libcuda.so.1"), cudaStandIn)
	const driver = "NVIDIA, up to CUDA 13.1"
	for state, want := range map[string]answer{
		"no adapter": {Missing: NoAdapter},
		"mismatch":   {Missing: NoDriver}, // of the library and the kernel's module
		"two": {List: []Adapter{
			{Name: "A", Driver: driver, Memory: 5 << 30}, {Name: "B", Driver: driver, Memory: 6 << 30},
		}},
	} {
		if got := asked(t, "ask-cuda", dir, state); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", state, got, want)
		}
	}
	compile(t, filepath.Join(dir, "libcuda.so.1"), "int nothing;")
	if got := asked(t, "ask-cuda", dir, "two"); got.Missing != NoDriver {
		t.Errorf("a library that isn't the driver's: got %+v", got)
	}
}

// What a provider needs is opened where packages have it, although one of the libraries needs another that
// comes later; what nobody has, and what it doesn't need, isn't.
func TestLoadCUDA(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: CUDA is for Linux alone")
	}
	dir := t.TempDir()
	place := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"blas", "dnn", "other"} {
		if err := os.Mkdir(place(name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	compile(t, place("blas/libstandinblas.so.1"), "int blas(void) { return 1; }",
		"-Wl,-soname,libstandinblas.so.1")
	compile(t, place("dnn/libcudnn.so.9"), "int blas(void); int dnn(void) { return blas(); }",
		"-Wl,-soname,libcudnn.so.9", place("blas/libstandinblas.so.1"))
	compile(t, place("other/libother.so.1"), "int other;")
	compile(t, place("gone.so.1"), "int gone(void) { return 1; }", "-Wl,-soname,libgone.so.1")
	compile(t, place("provider.so"),
		"int blas(void); int gone(void); int p(void) { return blas() + gone(); }",
		place("blas/libstandinblas.so.1"), place("gone.so.1"))
	got := LoadCUDA(place("provider.so"), []string{place("dnn"), place("blas"), place("other")})
	want := []string{place("blas/libstandinblas.so.1"), place("dnn/libcudnn.so.9")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("opened %v, want %v", got, want)
	}
	if got := LoadCUDA(place("none.so"), []string{place("blas")}); got != nil {
		t.Errorf("without a provider, opened %v", got)
	}
}
