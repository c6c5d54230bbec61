package relevance

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
)

// webGPU returns a device of the class, or skips the test: RUNEXP_WEBGPU is set where the library has WebGPU.
func webGPU(t *testing.T) stages.Device {
	t.Helper()
	if os.Getenv("RUNEXP_WEBGPU") == "" {
		t.Skip("skipped: make test-gpu runs it")
	}
	d := stages.Device{Class: "webgpu"}
	if _, err := library(t).Adapters(d); err != nil {
		t.Fatal(err)
	}
	return d
}

// without is what programs of a class do without.
func without(class string) Without { return withoutIn(class, stages.Float32) }

// withoutIn is what they do without in a precision.
func withoutIn(class, precision string) Without {
	k := ort.ProviderOf(class).KernelsIn(precision)
	return Without{Indices: k.NoIndices, Operators: k.Lacks}
}

// everyRule has policies that among them follow every rule, for an example.
func everyRule(t *testing.T, op *Op, ex Example) []Policy {
	references := map[Value][]float32{}
	_, flows := model(t, op, ex)
	for _, i := range flows {
		references[inputName(i)] = ex.otherwise(i, size(ex.Inputs[i]))
	}
	composite := func(rule, first LayerRule, n Norm, g Gates) Policy {
		return LRP{Conv: rule, Dense: rule, First: first, Stabiliser: 1e-6, Bias: n == NormFolded, Norm: n,
			Gates: g}.Policy()
	}
	every := []Policy{Derivative(), Guided(), Deconvolution(), TIBAV(), detached(), RAP().Policy(),
		RAPPaper().Policy(), rescaleAt(false, references), rescaleAt(true, references),
		Balanced().Policy(), AttnLRP().PolicyWith(LayerRules{Gamma(0.25, 1e-6), Gamma(0.25, 1e-6), true})}
	for _, rule := range []LayerRule{Epsilon(1e-6), Gamma(0.25, 1e-6), AlphaBeta(2, 1, 1e-6), ZPlus(1e-6),
		CaptumZPlus(1e-6)} {
		every = append(every, composite(rule, LayerRule{}, NormFolded, GatesConstant))
	}
	for _, first := range []LayerRule{ImageBox(1e-6), Flat(1e-6), WSquare(1e-6),
		Box([]float32{-3}, []float32{3}, []int{1}, 1e-6)} {
		every = append(every, composite(Epsilon(1e-6), first, NormApart, GatesHalved))
	}
	every = append(every, composite(Epsilon(1e-6), LayerRule{}, NormPassed, GatesHalved))
	for _, v := range []AbsLRPVariant{AbsLRPPaper, AbsLRPOfficial, AbsLRPJanuary} {
		for _, pool := range []MaxPoolRule{MaxPoolDivide, MaxPoolMultiply} {
			every = append(every, AbsLRP{Variant: v, MaxPool: pool, Ablation: AblationNone}.Policy())
		}
	}
	return every
}

// TestExamplesOnWebGPU runs every example of every operator by every rule on WebGPU, and compares outputs and
// relevance with the processor's.
func TestExamplesOnWebGPU(t *testing.T) {
	gpu := webGPU(t)
	// The provider's compiled shaders end with its last session, so one stays.
	held, err := prepareOn(t, opMaxPool, opMaxPool.Examples[0], Derivative(), gpu, without("webgpu"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.close()
	elsewhere{device: gpu, rules: everyRule, wrong: wrongOnWebGPU,
		within: func(op string) float64 { return max(1e-5, coarseOnWebGPU[op]) }}.compareAll(t)
}

// elsewhere is a device that isn't a processor in float32, and what is known of how it computes examples.
type elsewhere struct {
	device stages.Device
	rules  func(*testing.T, *Op, Example) []Policy
	wrong  []string // "operator, example" that exceed the tolerance
	fails  []string // those that return an error
	within func(op string) float64
}

// compareAll runs every example of every operator, and compares outputs and relevance with the processor's.
func (d elsewhere) compareAll(t *testing.T) {
	for _, op := range differentiable() {
		for _, ex := range op.Examples {
			ran := map[[sha256.Size]byte]bool{} // many rules are the same for an operator
			for _, p := range d.rules(t, op, ex) {
				name := fmt.Sprintf("%s, %s, by %s", op.Type, ex.Name, p.Name)
				there, err := prepareOn(t, op, ex, p, cpu, Without{})
				if err != nil {
					continue // the rule refuses the operator
				}
				if sum := sha256.Sum256(there.model); !ran[sum] {
					ran[sum] = true
					here, err := prepareOn(t, op, ex, p, d.device,
						withoutIn(d.device.Class, d.device.Precision))
					if err == nil {
						err = d.compare(t, name, op, ex, here, there)
						here.close()
					}
					if fails := slices.Contains(d.fails, op.Type+", "+ex.Name); fails != (err != nil) {
						t.Errorf("%s: error %v, known: %t", name, err, fails)
					}
				}
				there.close()
			}
			if len(ran) == 0 {
				t.Errorf("%s, %s: no rule ran", op.Type, ex.Name)
			}
		}
	}
}

// wrongOnWebGPU are examples of operators that the kernel computes wrongly, and package lower emits
// otherwise.
var wrongOnWebGPU = []string{"InstanceNormalization, signals", "Slice, backwards in steps"}

// coarseOnWebGPU has the tolerance of operators that the specification of WebGPU's shading language lets
// be as coarse, of kernels that compute places in float32, and of small differences that rules divide by
// each other.
var coarseOnWebGPU = map[string]float64{"Acos": 5e-3, "Cos": 5e-3, "Sin": 5e-3, "Tan": 5e-3, "Resize": 1e-4,
	"Softmax": 1e-4}

// compare runs an example on two devices, and fails the test where the numbers differ by more than rounding,
// or, of a wrong kernel, don't. It returns an error of the device.
func (d elsewhere) compare(t *testing.T, name string, op *Op, ex Example, here, there *bench) error {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	var x, u [][]float32
	for k, i := range there.flows {
		x = append(x, ex.draw(i, size(there.in[k])))
	}
	for _, s := range there.shapes {
		u = append(u, noise(r, size(s)))
	}
	y, back, err := here.try(t, x, u)
	if err != nil {
		return err
	}
	wantY, wantBack := there.run(t, x, u)
	worst := 0.0
	for i, want := range slices.Concat(wantY, wantBack) {
		worst = max(worst, farthest(want, slices.Concat(y, back)[i]))
	}
	wrong, tolerance := slices.Contains(d.wrong, op.Type+", "+ex.Name), d.within(op.Type)
	switch {
	case worst > tolerance && !wrong:
		t.Errorf("%s: off by %.2g of the largest", name, worst)
	case worst <= tolerance && wrong:
		t.Errorf("%s: the kernel is right: strike it from the list, and from the provider's row", name)
	}
	return nil
}

// farthest returns the largest difference of two rows over the largest magnitude of the first.
func farthest(want, got []float32) float64 {
	most, worst := 0.0, 0.0
	for i, w := range want {
		most = max(most, math.Abs(float64(w)))
		switch d := math.Abs(float64(w) - float64(got[i])); {
		case w == got[i], w != w && got[i] != got[i]:
		case math.IsNaN(d):
			return math.Inf(1)
		default:
			worst = max(worst, d)
		}
	}
	if worst == 0 {
		return 0
	}
	return worst / most
}
