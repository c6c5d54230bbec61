package ort

import (
	"fmt"
	"slices"
	"strconv"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
)

// A Provider is what ONNX Runtime calls an execution provider: it computes on the devices of a class.
type Provider struct {
	Class string // of [stages.DeviceClasses]
	Name  string // that ONNX Runtime gives it, in profiles too

	// NoIndices says that MaxPool lacks its output Indices.
	NoIndices bool

	// add adds the provider to a session's options, on one of its devices; nil for the one that always is there.
	add func(o *onnxruntime.SessionOptions, index int) error
}

// Providers has one provider for each class of devices.
var Providers = []*Provider{
	{Class: "cpu", Name: "CPUExecutionProvider"},
	{Class: "cuda", Name: "CUDAExecutionProvider", add: addCUDA},
	{Class: "webgpu", Name: "WebGpuExecutionProvider", add: addWebGPU, NoIndices: true},
}

// ProviderOf returns the provider of a class.
func ProviderOf(class string) *Provider {
	return Providers[slices.IndexFunc(Providers, func(p *Provider) bool { return p.Class == class })]
}

func addProvider(o *onnxruntime.SessionOptions, d stages.Device) error {
	p := ProviderOf(d.Class)
	if p.add == nil {
		return nil
	}
	return keepingHandlers(func() error { return p.add(o, d.Index) })
}

// addCUDA asks for float32 as it is written, without TF32's shorter mantissa, and for a convolution algorithm
// that isn't chosen by timing.
func addCUDA(o *onnxruntime.SessionOptions, index int) error {
	c, err := onnxruntime.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer c.Destroy()
	err = c.Update(map[string]string{
		"device_id":              strconv.Itoa(index),
		"use_tf32":               "0",
		"cudnn_conv_algo_search": "DEFAULT",
	})
	if err != nil {
		return err
	}
	return o.AppendExecutionProviderCUDA(c)
}

// addWebGPU adds the provider that is compiled into the library.
func addWebGPU(o *onnxruntime.SessionOptions, index int) error {
	if index > 0 {
		return fmt.Errorf("the library finds one adapter, webgpu:0")
	}
	return o.AppendExecutionProvider("WebGPU", nil)
}
