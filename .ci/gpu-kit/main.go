// Command gpu-kit makes a folder of pieces that are sent to a machine with a graphics card, which may have no
// network, and measure it there: run joins and unpacks them. The set webgpu has the command, the program of
// card/, ONNX Runtime with WebGPU, Vulkan's loader, nets and captum; the set cuda has ONNX Runtime with CUDA,
// whose cuBLAS and cuDNN are PyTorch's there.
//
//	go run ./.ci/gpu-kit BINARIES LIBRARIES OUT webgpu|cuda…
//
// BINARIES is the folder of runexp and card, LIBRARIES that of ONNX Runtime with WebGPU.
package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

func main() {
	if err := kit(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-kit:", err)
		os.Exit(1)
	}
}

//go:embed run torch_times.py README.tmpl
var own embed.FS

// kit makes the sets, and writes run, the sums of all pieces, and README.
func kit(args []string) error {
	if len(args) < 4 {
		return errors.New("usage: gpu-kit BINARIES LIBRARIES OUT webgpu|cuda…")
	}
	binaries, libraries, out := args[0], args[1], args[2]
	tmp, err := os.MkdirTemp("", "gpu-kit-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	var sets []set
	for _, name := range args[3:] {
		var files []file
		switch name {
		case "webgpu":
			files, err = webGPUFiles(binaries, libraries, tmp)
		case "cuda":
			files, err = cudaFiles(tmp)
		default:
			err = fmt.Errorf("no set is called %s", name)
		}
		if err != nil {
			return err
		}
		s, err := pack(name, files, out, pieceSize)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d pieces, %d MB\n", name, len(s.pieces), s.size/1e6)
		sets = append(sets, s)
	}
	return describe(sets, out)
}

// describe writes what accompanies the pieces.
func describe(sets []set, out string) error {
	var sums strings.Builder
	for _, s := range sets {
		fmt.Fprintf(&sums, "%s  %s.tar.xz\n", s.sum, s.name)
		for _, p := range s.pieces {
			fmt.Fprintf(&sums, "%s  %s\n", p.sum, p.name)
		}
	}
	run, err := own.ReadFile("run")
	if err != nil {
		return err
	}
	readme, err := os.Create(filepath.Join(out, "README"))
	if err != nil {
		return err
	}
	defer readme.Close()
	page := template.Must(template.ParseFS(own, "README.tmpl"))
	return errors.Join(os.WriteFile(filepath.Join(out, "sums"), []byte(sums.String()), 0o666),
		os.WriteFile(filepath.Join(out, "run"), run, 0o777),
		page.Execute(readme, struct {
			Folder string
			Sets   []set
		}{out, sets}))
}

// A file of a set: its path in the set, and on this machine, or its content.
type file struct {
	path    string
	source  string
	content []byte
}

func (f file) open() (io.ReadCloser, int64, error) {
	if f.source == "" {
		return io.NopCloser(strings.NewReader(string(f.content))), int64(len(f.content)), nil
	}
	r, err := os.Open(f.source)
	if err != nil {
		return nil, 0, err
	}
	info, err := r.Stat()
	if err != nil {
		r.Close()
		return nil, 0, err
	}
	return r, info.Size(), nil
}

// webGPUFiles are the files of the set webgpu. It is run in the project's folder.
func webGPUFiles(binaries, libraries, tmp string) ([]file, error) {
	torch, err := own.ReadFile("torch_times.py")
	if err != nil {
		return nil, err
	}
	files := []file{
		{path: "runexp", source: filepath.Join(binaries, "runexp")},
		{path: "card", source: filepath.Join(binaries, "card")},
		{path: "libonnxruntime.so", source: filepath.Join(libraries, "libonnxruntime.so")},
		{path: "quickstart.yaml", source: "experiments/quickstart.yaml"},
		{path: "python/torch_times.py", content: torch},
		{path: "python/shapes.py", source: "stages/internal/program/testdata/shapes.py"},
	}
	for _, net := range []string{"resnet", "vgg", "vgg-bn", "vit"} { // of the quickstart
		path := "quickstart/" + net + ".onnx"
		files = append(files, file{path: path, source: filepath.Join("experiments", path)})
	}
	loader, err := vulkanLoader(tmp)
	if err != nil {
		return nil, err
	}
	files = append(files, file{path: "vulkan/libvulkan.so.1", source: loader})
	wheels, err := download(tmp, "captum==0.9.0", "tqdm==4.70.1", "packaging==26.4")
	if err != nil {
		return nil, err
	}
	for _, w := range wheels {
		files = append(files, file{path: "python/" + filepath.Base(w), source: w})
	}
	return files, nil
}

// cudaVersion is the release of ONNX Runtime with CUDA 13, which PyTorch has since 2.9.
const cudaVersion = "1.31.1"

// cudaFiles are the libraries of the set cuda.
func cudaFiles(tmp string) ([]file, error) {
	wheels, err := download(tmp, "onnxruntime-gpu=="+cudaVersion)
	if err != nil {
		return nil, err
	}
	names := []string{"libonnxruntime.so", "libonnxruntime_providers_shared.so",
		"libonnxruntime_providers_cuda.so"}
	var files []file
	for _, name := range names {
		to := filepath.Join(tmp, name)
		inside := "onnxruntime/capi/" + name
		if name == "libonnxruntime.so" {
			inside += "." + cudaVersion
		}
		if err := extract(wheels[0], inside, to); err != nil {
			return nil, err
		}
		files = append(files, file{path: name, source: to})
	}
	return files, nil
}

// executable reports whether a file of a set is a program.
func executable(path string) bool { return slices.Contains([]string{"runexp", "card"}, path) }
