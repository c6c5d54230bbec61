package ort

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/gpu"
)

// addCUDA adds the provider without TF32 and with algorithms that aren't chosen by timing, so that a card
// computes the same in every run. Only sums by atomic additions may still differ in the last bits.
func addCUDA(r *Runtime, o *onnxruntime.SessionOptions, index int) error {
	return r.addCUDAWith(o, index, false)
}

// addTF32 adds it with TF32: products round their operands to mantissas of 10 bits.
func addTF32(r *Runtime, o *onnxruntime.SessionOptions, d stages.Device) error {
	return r.addCUDAWith(o, d.Index, true)
}

func (r *Runtime) addCUDAWith(o *onnxruntime.SessionOptions, index int, tf32 bool) error {
	if err := r.prepareCUDA(tf32); err != nil {
		return err
	}
	c, err := onnxruntime.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer c.Destroy()
	err = c.Update(map[string]string{
		"device_id": strconv.Itoa(index),
		"use_tf32":  map[bool]string{true: "1", false: "0"}[tf32],
		// Rules choose by the shapes. With cuDNN 9, DEFAULT takes the first algorithm that works, which is
		// slow.
		"cudnn_conv_algo_search": "HEURISTIC",
		// Otherwise each session's arena doubles when it grows, and never shrinks.
		"arena_extend_strategy": "kSameAsRequested",
	})
	if err != nil {
		return err
	}
	return o.AppendExecutionProviderCUDA(c)
}

// prepareCUDA opens CUDA's libraries in the folders of pip, which the provider doesn't search, and forbids
// TF32 to all of them unless the process is for TF32: where cuDNN has no plan without TF32, convolutions
// would use one with it in spite of the option. The libraries read that once, so that a process computes
// with TF32 or without it.
func (r *Runtime) prepareCUDA(tf32 bool) error {
	cudaPrepared.Do(func() {
		const override = "NVIDIA_TF32_OVERRIDE"
		if cudaTF32 = tf32; !tf32 && os.Getenv(override) == "" {
			_ = os.Setenv(override, "0") // only other names and values would be an error
		}
		var folders []string
		for _, environment := range pythons() {
			for _, site := range sitePackages(environment) {
				// the pattern is well-formed
				found, _ := filepath.Glob(filepath.Join(site, "nvidia", "*", "lib"))
				folders = append(folders, found...)
			}
		}
		gpu.LoadCUDA(filepath.Join(filepath.Dir(r.Library.Path), "libonnxruntime_providers_cuda.so"), folders)
	})
	if tf32 != cudaTF32 {
		return &NoDevice{"a process computes on CUDA with TF32 or without it, and this one has begun " +
			map[bool]string{true: "with it", false: "without it"}[cudaTF32],
			"run the same command again: what is stored isn't computed again"}
	}
	return nil
}

var (
	cudaPrepared sync.Once
	cudaTF32     bool // as it was prepared
)

const getCUDA = "pip install 'onnxruntime-gpu[cuda,cudnn]', or load the modules of CUDA and cuDNN"

var (
	noCUDA     = regexp.MustCompile(`(?i)not enabled in this build|was not built with CUDA`)
	noLibrary  = regexp.MustCompile(`(\S+): cannot open shared object file`)
	cudaFailed = regexp.MustCompile(`CUDA failure (\d+): ([^;]*)`)
)

// whyNoCUDA explains why a program doesn't run on CUDA.
func whyNoCUDA(err error, adapters []gpu.Adapter, missing error) *NoDevice {
	text := err.Error()
	lib := noLibrary.FindStringSubmatch(text)
	visible, limited := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	switch {
	case noCUDA.MatchString(text) || lib != nil && strings.Contains(lib[1], "libonnxruntime_providers_"):
		return &NoDevice{"this ONNX Runtime has no CUDA",
			"pip uninstall -y onnxruntime && pip install 'onnxruntime-gpu[cuda,cudnn]'"}
	case errors.Is(missing, gpu.NoDriver):
		return &NoDevice{"no driver of NVIDIA works here",
			"install it, or start the container with its GPUs; then nvidia-smi lists them"}
	case errors.Is(missing, gpu.NoAdapter) && limited:
		return &NoDevice{"NVIDIA's driver shows no GPU", fmt.Sprintf("CUDA_VISIBLE_DEVICES is %q", visible)}
	case errors.Is(missing, gpu.NoAdapter):
		return &NoDevice{"NVIDIA's driver has no GPU", "nvidia-smi shows the GPUs that it finds"}
	case strings.Contains(text, "cuDNN is not available"):
		return &NoDevice{"CUDA's provider needs cuDNN, which isn't found", getCUDA}
	case lib != nil:
		return &NoDevice{fmt.Sprintf("CUDA's provider needs %s, which isn't found", lib[1]), getCUDA}
	}
	if m := cudaFailed.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("error %s, %s", m[1], strings.TrimSpace(m[2]))
	} else {
		text = plainly(err)
	}
	return &NoDevice{cmp.Or(describe(adapters), "CUDA") + " computes nothing: " + text, ""}
}

// describe names the first adapter and its driver.
func describe(adapters []gpu.Adapter) string {
	if len(adapters) == 0 {
		return ""
	}
	a := adapters[0]
	return strings.TrimSuffix(fmt.Sprintf("%s with the driver %s", a.Name, a.Driver), " with the driver ")
}
