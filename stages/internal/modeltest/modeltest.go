// Package modeltest provides tests with ONNX Runtime and models.
package modeltest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// Runtime opens ONNX Runtime, on the terms of [stagetest.Lacks].
func Runtime(t testing.TB) *ort.Runtime {
	t.Helper()
	r, err := ort.Default()
	if err != nil {
		stagetest.Lacks(t, err.Error())
	}
	return r
}

// Data returns the folder of real nets and photographs, as [stagetest.Shared] does.
func Data(t testing.TB) string {
	t.Helper()
	return stagetest.Shared(t, "data")
}

// File returns the path of a file that holds a model.
func File(t testing.TB, m *onnx.Model) string {
	t.Helper()
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "net.onnx")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Model runs the stage model/onnx and returns the data on its port.
func Model(t testing.TB, p model.ONNXParams) stages.Data {
	t.Helper()
	Runtime(t)
	defaults := model.ONNX.NewParams().(*model.ONNXParams)
	for _, d := range []struct{ v, unset *string }{
		{&p.Preset, &defaults.Preset}, {&p.Layout, &defaults.Layout}, {&p.Order, &defaults.Order}, {&p.Kind,
			&defaults.Kind},
	} {
		if *d.v == "" {
			*d.v = *d.unset
		}
	}
	r := stagetest.Run(t, model.ONNX, &p, nil)
	return stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
}

// Rewritten runs a stage that rewrites models, with its default parameters, and returns the data on its port.
func Rewritten(t testing.TB, s stages.Stage, base stages.Data) stages.Data {
	t.Helper()
	r := stagetest.Run(t, s, nil, map[string][]stages.Data{"model": {base}})
	d := stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
	d.Base = &base
	return d
}

// Explaining returns the model whose answer is an expression of another's outputs.
func Explaining(t testing.TB, base stages.Data, p model.TargetParams) stages.Data {
	t.Helper()
	r := stagetest.Run(t, model.Target, &p, map[string][]stages.Data{"model": {base}})
	d := stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
	d.Base = &base
	return d
}

// Official returns one of the nets that the official numbers were computed with. It takes normalised images.
func Official(t testing.TB, name string, size int) stages.Data {
	t.Helper()
	return Model(t, model.ONNXParams{Path: OfficialPath(t, name), Preset: "unit",
		Size: picture.Size{H: size, W: size}})
}

// Net returns the net in a model's payload.
func Net(t testing.TB, d stages.Data) *program.Net {
	t.Helper()
	n, err := program.LoadNet(stagetest.NewSlot(), d)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// NetOf returns the net of a model that is on no port.
func NetOf(m modelfile.Model) (*program.Net, error) {
	payload, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return program.LoadNet(stagetest.NewSlot(), stages.Data{
		Items: stages.ItemSlice{{Digest: stages.Sum(payload)}},
		Load:  func(int) ([]byte, error) { return payload, nil },
	})
}

// Spec returns the specification in a model's payload.
func Spec(t testing.TB, d stages.Data) modelfile.Spec {
	t.Helper()
	return decode(t, d).Spec
}

func decode(t testing.TB, d stages.Data) modelfile.Model {
	t.Helper()
	b, err := d.Load(0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := modelfile.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Predict is the stage model/predict, for families that import no other family.
var Predict = model.Predict

// OfficialPath returns the file of a net that the official numbers were computed with.
func OfficialPath(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(golden.Dir(t), "models", name+".onnx")
}
