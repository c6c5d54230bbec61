package program_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestFile: another program that loads a net's file and feeds it normalised images gets the net's answers,
// also of a net with blue first, with a fixed batch, and of one that was rewritten.
func TestFile(t *testing.T) {
	modeltest.Runtime(t)
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	vgg := model.ONNXParams{Path: filepath.Join(root, "experiments", "quickstart", "vgg.onnx"),
		Preset: "half"}
	trained := modeltest.Model(t, vgg)
	blue := vgg
	blue.Order = modelfile.BGR
	pairs, _ := small3of(t, 2, 17, []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 3, 3, 2, 2)},
		onnx.NewNode("conv", "Conv", []string{"input", "w"}, []string{"c"}))
	for name, tt := range map[string]struct {
		net   *program.Net
		batch int
	}{
		"trained":    {modeltest.Net(t, trained), 0},
		"blue first": {net(t, blue), 0},
		"pairs":      {pairs, 2},
		"randomised": {modeltest.Net(t, modeltest.Rewritten(t, model.Randomise, trained)), 1},
	} {
		f, err := tt.net.File(t.Context())
		if err != nil || f.Batch != tt.batch {
			t.Fatalf("%s: batch %d, %v", name, f.Batch, err)
		}
		const images = 4
		want := classify(t, tt.net, stagetest.NewSlot(), 1, images)
		got := answersOf(t, f, tt.net, images)
		for i, w := range want {
			if d := math.Abs(float64(got[i] - w)); !(d <= 1e-4*(1+math.Abs(float64(w)))) {
				t.Errorf("%s: answer %d is %v, want %v", name, i, got[i], w)
			}
		}
	}
}

// answersOf runs a file as any program would.
func answersOf(t *testing.T, f program.File, n *program.Net, images int) (answers []float32) {
	t.Helper()
	rt := modeltest.Runtime(t)
	s, err := rt.NewSession(f.ONNX, []string{lower.In("images").Value()}, []string{lower.Answer},
		stages.Device{Class: "cpu", Threads: 1}, f.Disabled...)
	if err != nil {
		t.Fatal(err)
	}
	rows := f.Batch
	if rows == 0 {
		rows = images
	}
	in, err := ort.NewTensor[float32](rt, rows, n.Channels, n.Height, n.Width)
	if err != nil {
		t.Fatal(err)
	}
	out, err := ort.NewTensor[float32](rt, rows, n.Classes)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < images; from += rows {
		for i := range rows {
			wave(from+i, in.Write()[i*n.Size():(i+1)*n.Size()])
		}
		if err := s.Run(t.Context(), []ort.Value{in}, []ort.Value{out}); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, out.Data...)
	}
	return answers
}
