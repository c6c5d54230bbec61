package perturb

import (
	"reflect"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// TestTargetOfCurves holds that every curve takes a target, which passes through model/target where it is an
// expression, is left out of keys by default, and excludes the port targets.
func TestTargetOfCurves(t *testing.T) {
	for _, s := range []stages.Stage{Insertion, Deletion, Ablation, Region, Road, PIC, PICEnds, SoftMask} {
		params := s.NewParams()
		var target *stages.Field
		for _, f := range stages.Fields(params) {
			if f.Name == "target" {
				target = &f
			}
		}
		if target == nil || !target.Added {
			t.Fatalf("%s: the parameter target is %+v", s.Name, target)
		}
		v := reflect.ValueOf(params).Elem().FieldByIndex(target.Index)
		if v.String() != program.PredictedClass {
			t.Errorf("%s: the target is %q by default", s.Name, v.String())
		}
		port := s.Input("model")
		if port.Via != program.TargetStage || port.ViaIf(params) {
			t.Errorf("%s: a class passes through %s", s.Name, port.Via)
		}
		v.SetString("sum(output[3])")
		if !port.ViaIf(params) {
			t.Errorf("%s: an expression doesn't pass through %s", s.Name, port.Via)
		}
		if err := s.Check(params, func(name string) bool { return name == "targets" }); err == nil ||
			!strings.Contains(err.Error(), "the port targets is wired") {
			t.Errorf("%s: target and targets: %v", s.Name, err)
		}
		if err := s.Check(params, func(string) bool { return false }); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		v.SetString("sum(output[")
		validated := params.(interface{ Validate() error })
		if err := validated.Validate(); err == nil || !strings.Contains(err.Error(), "column") {
			t.Errorf("%s: a malformed target: %v", s.Name, err)
		}
	}
}
