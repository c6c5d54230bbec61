package model_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
)

const workerName = "model-worker"

// TestMain makes the test's program a worker if it's called as one.
func TestMain(m *testing.M) {
	if os.Args[0] == workerName {
		ort.Serve(os.Stdin, os.Stdout)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestMeasuringOpenSizes holds that measuring ends where sizes and channel orders make more graphs than there
// may be processes, and finds there what it finds in this one.
func TestMeasuringOpenSizes(t *testing.T) {
	modeltest.Runtime(t)
	r := rand.New(rand.NewPCG(3, 27))
	s := drawStranger(r)
	s.open, s.side = true, 40
	file, photos := s.net(t, r), s.folder(t, r)
	found, err := model.Inspect(t.Context(), model.ONNXParams{Path: file, Preset: "imagenet", Layout: "auto",
		Order: "auto", Kind: "auto"})
	if err != nil || found.Problem != "" {
		t.Fatal(err, found.Problem)
	}
	folder, err := registry.LookInto(photos)
	if err != nil {
		t.Fatal(err)
	}
	measure := func() (*registry.Measured, error) {
		return registry.Measure(t.Context(), file, registry.Look{},
			&registry.Inspection{Inspection: found}, folder,
			nil)
	}
	here, err := measure()
	if err != nil || here.Unanswered() != nil {
		t.Fatal(err, here.Unanswered())
	}
	graphs := map[string]bool{}
	for _, f := range here.Feeds {
		graphs[fmt.Sprint(f.Order, f.Size)] = true
	}
	if len(graphs) < 6 {
		t.Errorf("%d graphs are too few to tell", len(graphs))
	}
	ort.UseWorkers(workerName)
	defer ort.UseWorkers()
	done := make(chan error, 1)
	go func() {
		apart, err := measure()
		if err == nil && !reflect.DeepEqual(apart.Hypotheses, here.Hypotheses) {
			err = fmt.Errorf("%v in processes of their own, %v in this one", apart.Hypotheses,
				here.Hypotheses)
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("it doesn't end")
	}
}
