package ort

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/stagetest"
)

// library opens ONNX Runtime, on the terms of [stagetest.Lacks].
func library(t testing.TB) *Runtime {
	t.Helper()
	r, err := Default()
	if err != nil {
		stagetest.Lacks(t, err.Error())
	}
	return r
}

var cpu = stages.Device{Class: "cpu", Threads: 1}

// doubler returns a model of the given nodes from x to y, both vectors of n.
func doubler(t testing.TB, n int, nodes func(f *onnx.Fragment)) []byte {
	t.Helper()
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}},
		Graph: &onnxpb.GraphProto{Name: "g"},
	}}
	f := m.Fragment()
	nodes(f)
	m.After(f)
	m.SetInputs(onnx.Value{Name: "x", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{n}, Known: true})
	m.SetOutputs(onnx.Value{Name: "y", Elem: onnxpb.TensorProto_FLOAT})
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func add(f *onnx.Fragment) { f.OpTo("y", "Add", []string{"x", "x"}) }

func TestRun(t *testing.T) {
	r := library(t)
	s, err := r.NewSession(doubler(t, 3, add), []string{"x"}, []string{"y"}, cpu)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, err := NewTensor[float32](r, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	y, err := NewTensor[float32](r, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	for _, in := range []float32{1, -2.5} {
		x.Data[1] = in
		if err := s.Run(context.Background(), []Value{x}, []Value{y}); err != nil {
			t.Fatal(err)
		}
		if y.Data[0] != 0 || y.Data[1] != 2*in {
			t.Errorf("got %v for %v", y.Data, in)
		}
	}
	got, err := Fetch[float32](t.Context(), s, []Value{x})
	if err != nil || len(got) != 1 || !slices.Equal(got[0].Shape, []int{3}) ||
		!slices.Equal(got[0].Data, y.Data) {
		t.Errorf("fetched %v, %v", got, err)
	}
	if _, err := Fetch[int64](t.Context(), s, []Value{x}); err == nil ||
		!strings.Contains(err.Error(), "int64") {
		t.Errorf("integers of a model that makes none: %v", err)
	}
	if err := s.Run(context.Background(), nil, []Value{y}); err == nil {
		t.Error("a run without inputs was accepted")
	}
	short, err := NewTensor[float32](r, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer short.Close()
	if err := s.Run(context.Background(), []Value{short}, []Value{y}); err == nil ||
		!strings.HasPrefix(err.Error(), "ONNX Runtime: ") {
		t.Errorf("an input of the wrong shape: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("enough")
	cancel(stop)
	if err := s.Run(ctx, []Value{x}, []Value{y}); !errors.Is(err, stop) {
		t.Errorf("a cancelled run: %v", err)
	}
}

// TestCancelled holds that a long run ends when its context is cancelled.
func TestCancelled(t *testing.T) {
	r := library(t)
	const nodes, n = 300, 1_000_000
	s, err := r.NewSession(doubler(t, n, func(f *onnx.Fragment) {
		v := "x"
		for range nodes {
			v = f.Op("Sin", []string{v})
		}
		f.OpTo("y", "Neg", []string{v})
	}), []string{"x"}, []string{"y"}, cpu)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, _ := NewTensor[float32](r, n)
	defer x.Close()
	y, _ := NewTensor[float32](r, n)
	defer y.Close()
	// The run takes a second or so; the deadline passes in the middle of it.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := s.Run(ctx, []Value{x}, []Value{y}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestMalformed holds that models that make no sense are errors, not crashes.
func TestMalformed(t *testing.T) {
	r := library(t)
	good := doubler(t, 3, add)
	change := func(f func(*onnxpb.GraphProto)) []byte {
		p := new(onnxpb.ModelProto)
		if err := proto.Unmarshal(good, p); err != nil {
			t.Fatal(err)
		}
		f(p.Graph)
		b, err := proto.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	tests := map[string][]byte{
		"nothing":             nil,
		"a text":              []byte("hello"),
		"cut off":             good[:len(good)/2],
		"an unknown operator": change(func(g *onnxpb.GraphProto) { g.Node[0].OpType = "Bogus" }),
		"a missing value":     change(func(g *onnxpb.GraphProto) { g.Node[0].Input[0] = "nowhere" }),
		"a cycle":             change(func(g *onnxpb.GraphProto) { g.Node[0].Input[0] = "y" }),
		"too many inputs": change(func(g *onnxpb.GraphProto) {
			g.Node[0].Input = []string{"x", "x",
				"x"}
		}),
		"no node":              change(func(g *onnxpb.GraphProto) { g.Node = nil }),
		"an attribute misused": change(func(g *onnxpb.GraphProto) { g.Node[0].OpType = "Conv" }),
	}
	for name, b := range tests {
		s, err := r.NewSession(b, []string{"x"}, []string{"y"}, cpu)
		if err == nil {
			s.Close()
			t.Errorf("%s: was loaded", name)
		}
	}
	if _, err := r.NewSession(good, nil, nil, cpu); err == nil {
		t.Error("a session without inputs was made")
	}
}

// TestLostDevice holds which words of libraries mean that a device is lost, also where a process of its own
// passes them on.
func TestLostDevice(t *testing.T) {
	for text, want := range map[string]bool{
		"Error running network: Non-zero status code returned while running Conv node. CUDA failure 719: " +
			"unspecified launch failure ; GPU=0 ; expr=cudaStreamSynchronize(stream)": true,
		"CUDA failure 700: an illegal memory access was encountered ; GPU=1":              true,
		"CUDA failure 46: all CUDA-capable devices are busy or unavailable ; GPU=1":       true,
		"CUDA failure 702: the launch timed out and was terminated ; GPU=0":               true,
		"CUDA failure 715: an illegal instruction was encountered ; GPU=0":                true,
		"CUDA failure 999: unknown error ; GPU=0":                                         true,
		"NVRM: Xid (PCI:0000:65:00): 79, GPU has fallen off the bus.":                     true,
		"WebGPU device lost (2): the driver was reset":                                    true,
		"Failed to download data from buffer: [Device \"d\"] is lost.":                    true,
		"vkQueueSubmit failed with VK_ERROR_DEVICE_LOST":                                  true,
		"CreateCommittedResource failed with DXGI_ERROR_DEVICE_REMOVED (0x887A0005)":      true,
		"CUDA failure 2: out of memory ; GPU=0":                                           false,
		"CUDA failure 1: invalid argument ; GPU=1":                                        false,
		"CUDA failure 7000: no such error":                                                false,
		"Error running network: Got invalid dimensions for input lost":                    false,
		"Failed to get a WebGPU device: the limit is too high; the allocation is lost":    false,
		"CUDNN failure 4000: CUDNN_STATUS_INTERNAL_ERROR ; GPU=0 ; expr=cudnnConvolution": false,
	} {
		err := explain(errors.New(text))
		m := &message{}
		m.fail(err)
		if got, passed := errors.Is(err, stages.ErrDeviceLost), errors.Is(m.failure(),
			stages.ErrDeviceLost); got != want || passed != want {
			t.Errorf("%q is the loss of a device: %v, passed on %v", text, got, passed)
		}
	}
}

// TestOutOfMemoryOnWebGPU: whatever makes a value too large for a device is a lack of memory.
func TestOutOfMemoryOnWebGPU(t *testing.T) {
	if os.Getenv("RUNEXP_WEBGPU") == "" {
		t.Skip("skipped: make test-gpu runs it")
	}
	r := library(t)
	var err error
	for _, numbers := range []int64{1 << 10, 1 << 28, 1 << 29, 1 << 31} { // up to 8 GiB, beyond any limit
		s, failed := r.NewSession(doubler(t, 1, func(f *onnx.Fragment) {
			x := f.Op("Expand", []string{"x", f.Ints("shape", []int64{numbers}, 1)})
			f.OpTo("y", "ReduceMax", []string{f.Op("Relu", []string{x})},
				onnx.Attr{Name: "axes", Value: []int64{0}})
		}), []string{"x"}, []string{"y"}, stages.Device{Class: "webgpu", Threads: 1})
		if failed != nil {
			t.Fatal(failed)
		}
		x, errX := NewTensor[float32](r, 1)
		y, errY := NewTensor[float32](r, 1)
		if err := errors.Join(errX, errY); err != nil {
			t.Fatal(err)
		}
		err = s.Run(t.Context(), []Value{x}, []Value{y})
		if err != nil && (numbers == 1<<10 || !errors.Is(err, stages.ErrOutOfMemory)) {
			t.Errorf("%d numbers: %v", numbers, err)
		}
		if err := errors.Join(s.Close(), x.Close(), y.Close()); err != nil {
			t.Error(err)
		}
	}
	if err == nil {
		t.Error("a device holds 8 GiB in a value")
	}
}

func TestOutOfMemory(t *testing.T) {
	for text, want := range map[string]bool{
		"Error running network: Non-zero status code: Failed to allocate memory for requested buffer of " +
			"size 4": true,
		"std::bad_alloc":                           true,
		"CUDA failure 2: out of memory ; GPU=0":    true,
		"CUDNN failure: CUDNN_STATUS_ALLOC_FAILED": true,
		"WebGPU validation failed. [Invalid Buffer (unlabeled)] is invalid due to a previous error.\n - " +
			"While calling [Device].CreateBindGroup([BindGroupDescriptor \"Expand\"]).": true,
		"WebGPU validation failed. [Invalid ComputePipeline] is invalid due to a previous error.": false,
		"Error running network: Got invalid dimensions for input x":                               false,
	} {
		if got := errors.Is(explain(errors.New(text)), stages.ErrOutOfMemory); got != want {
			t.Errorf("%q is out of memory: %v", text, got)
		}
	}
	// And the library's own words, for a terabyte.
	r := library(t)
	s, err := r.NewSession(doubler(t, 1, func(f *onnx.Fragment) {
		shape := f.Ints("shape", []int64{1 << 38}, 1)
		f.OpTo("y", "Expand", []string{"x", shape})
	}), []string{"x"}, []string{"y"}, cpu)
	if err == nil {
		defer s.Close()
		x, errTensor := NewTensor[float32](r, 1)
		if errTensor != nil {
			t.Fatal(errTensor)
		}
		defer x.Close()
		_, err = Fetch[float32](t.Context(), s, []Value{x})
	}
	if !errors.Is(err, stages.ErrOutOfMemory) {
		t.Errorf("a terabyte: %v", err)
	}
}

// TestSet: a tensor takes all bits, and counts as written only if any changes.
func TestSet(t *testing.T) {
	x, err := NewTensor[float32](library(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	negative := float32(math.Copysign(0, -1))
	for i, c := range []struct {
		to      []float32
		written bool
	}{{[]float32{0, 0}, false}, {[]float32{negative}, true}, {[]float32{negative, 0}, false}} {
		before := x.written()
		x.Set(c.to)
		if written := x.written() != before; written != c.written ||
			math.Signbit(float64(x.Data[0])) != math.Signbit(float64(c.to[0])) {
			t.Errorf("%d: %v, written %v", i, x.Data, written)
		}
	}
}

func TestTensorsAreAligned(t *testing.T) {
	r := library(t)
	for n := 1; n < 100; n += 7 {
		x, err := NewTensor[uint16](r, n)
		if err != nil {
			t.Fatal(err)
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(x.Data))); at%alignment != 0 || len(x.Data) != n {
			t.Errorf("%d elements at %#x", len(x.Data), at)
		}
		x.Close()
	}
	if _, err := NewTensor[float32](r, 2, 0); err == nil {
		t.Error("an empty tensor was made")
	}
	for _, shape := range [][]int{{1 << 32}, {1 << 20, 1 << 20}, {1 << 62, 1 << 62, 16}} {
		if _, err := NewTensor[float32](r, shape...); !errors.Is(err, stages.ErrOutOfMemory) {
			t.Errorf("a tensor of shape %v: error %v", shape, err)
		}
	}
}

func TestFind(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: the names of files are those of Linux")
	}
	dir := t.TempDir()
	touch := func(names ...string) string {
		sub, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if err := os.WriteFile(filepath.Join(sub, n), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return sub
	}
	tests := []struct {
		name  string
		files []string
		want  string
	}{
		{"the plain name", []string{"libonnxruntime.so", "libonnxruntime.so.1.30.0"}, "libonnxruntime.so"},
		{"the newest", []string{"libonnxruntime.so.1.9.0", "libonnxruntime.so.1.24.1",
			"libonnxruntime.so.1.3.0"}, "libonnxruntime.so.1.24.1"},
		{"not a part of it", []string{"libonnxruntime_providers_shared.so"}, ""},
	}
	for _, tt := range tests {
		sub := touch(tt.files...)
		got, err := Find(sub)
		if tt.want == "" {
			var missing *ErrNoRuntime
			if !errors.As(err, &missing) || !strings.Contains(err.Error(), "--onnxruntime names the folder") {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err != nil || got.Path != filepath.Join(sub, tt.want) {
			t.Errorf("%s: got %v, %v", tt.name, got, err)
		}
	}
	t.Setenv("ONNXRUNTIME_LIB", filepath.Join(dir, "none.so"))
	if _, err := Find(""); err == nil ||
		!strings.Contains(err.Error(), "$ONNXRUNTIME_LIB names no ONNX Runtime") {
		t.Errorf("a path that isn't there: %v", err)
	}
	t.Setenv("ONNXRUNTIME_LIB", "")
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("LD_LIBRARY_PATH", "")
	if lib, err := Find(""); err == nil {
		t.Skipf("skipped: this machine has a library at %s", lib.Path)
	} else if !strings.Contains(err.Error(), filepath.Join(dir, "runexp", "lib")) ||
		!strings.Contains(err.Error(), Version) {
		t.Errorf("the places looked at are missing: %v", err)
	}
	cached := filepath.Join(dir, "runexp", "lib")
	if err := os.MkdirAll(cached, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cached, "libonnxruntime.so"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if lib, err := Find(""); err != nil || lib.How != "the user's cache folder" {
		t.Errorf("got %v, %v", lib, err)
	}
}

func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"1.23.2", "1.24.1", true}, {"1.24.1", "1.24.1", false}, {"1.24.10", "1.24.9", false}, {"1.9.0",
			"1.24.1", true}, {"2.0.0", "1.24.1", false},
	} {
		if got := older(tt.a, tt.b); got != tt.want {
			t.Errorf("%s older than %s: %v", tt.a, tt.b, got)
		}
	}
	file := filepath.Join(t.TempDir(), "lib")
	if err := os.WriteFile(file, []byte("\x00VERS_1.19.2\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v := versionIn(file); v != "1.19.2" {
		t.Errorf("version %q", v)
	}
	if v := versionIn("/none/libonnxruntime.so.1.20.0"); v != "1.20.0" {
		t.Errorf("version %q by name", v)
	}
}
