package score

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/stagetest"
)

// maskedFacts are the facts of the curves of perturb/soft-mask.
func maskedFacts(values string) stages.Facts {
	f := facts("masked", "")
	f["values"] = values
	return f
}

// TestAverageDrop checks drop, increase and gain by hand, and where each is undefined.
func TestAverageDrop(t *testing.T) {
	r := stagetest.Run(t, AverageDrop, nil, map[string][]stages.Data{"masked": {stagetest.Items(
		maskedFacts("signed"), curve(0.8, 0.2), curve(0.4, 0.7), curve(0.5, 0.5), curve(0, 0.5),
		curve(1, 0.25),
		curve(0.5, nan), curve(0.5, -0.25), curve(-0.5, 0.25))}}) // differences of two classes
	check(t, r, "drop", 1e-15, 0.75, 0, 0, nan, 0.75, nan, 1, nan)
	check(t, r, "increase", 0, 0, 1, 0, 1, 0, nan, 0, 1)
	check(t, r, "gain", 1e-15, 0, 0.5, 0, 0.5, nan, nan, 0, 0.5)
	fails(t, AverageDrop, nil, map[string][]stages.Data{"masked": {stagetest.Items(facts("morf", "1"),
		curve(1, 0))}}, `the input "masked" needs curves of perturb/soft-mask, not of the order "morf"`)
}

// TestADCC checks the parts of ADCC and their harmonic mean by hand, in one number for each image and for the
// means.
func TestADCC(t *testing.T) {
	in := map[string][]stages.Data{
		"maps": {stagetest.Items(nil, pixels(1, 1, 1, 3), pixels(0, 0, 0, 4), pixels(2, 2, 2, 2),
			pixels(0, -1, 0, 0), pixels(1, 1, 1, 3), pixels(1, 1, 1, 3))},
		"again": {stagetest.Items(nil, pixels(2, 2, 2, 4), pixels(4, 4, 4, 0), pixels(0, 1, 0, 0),
			pixels(0, 1, 0, 0), pixels(2, 2, 2, 4), pixels(2, 2, 2, 4))},
		"masked": {stagetest.Items(maskedFacts("magnitude"), curve(0.8, 0.6), curve(0.5, 0.5),
			curve(0.5, nan), curve(1, 0), curve(0.2, -0.5), curve(-0.2, 0.5),
			curve(0.8, 0.6))},
	}
	r := stagetest.Run(t, ADCC, nil, in)
	check(t, r, "coherency", 1e-12, 1, 0, nan, 1, 1, 1)
	check(t, r, "complexity", 1e-12, 0.25, 0.25, nan, 0.25, 0.25, 0.25)
	check(t, r, "drop", 1e-12, 0.25, 0, nan, 1, 1, nan)
	check(t, r, "scores", 1e-12, 3/(1+4/3.+4/3.), 0, nan, 0, 0, nan)
	parts := map[string][]stages.Data{}
	for _, port := range []string{"coherency", "complexity", "drop"} {
		parts[port] = []stages.Data{stagetest.Items(nil, r.Payloads[port]...)}
	}
	means := stagetest.Run(t, ADCCMeans, nil, parts)
	c, k, d := 3/4., 0.25, 2.25/4
	check(t, means, "scores", 1e-12, 3/(1/c+1/(1-k)+1/(1-d)))
	if len(means.Warnings) != 1 {
		t.Errorf("warnings %q", means.Warnings)
	}
	drops := parts["drop"]
	parts["drop"] = []stages.Data{stagetest.Items(nil, r.Payloads["drop"][1:]...)}
	fails(t, ADCCMeans, nil, parts, "the ports coherency and drop are of different images")
	parts["drop"] = slices.Repeat(drops, 2)
	fails(t, ADCCMeans, nil, parts, "the ports coherency and drop are of different images")
	fails(t, ADCC, &ADCCParams{AgainParams{"signed"}}, in,
		"perturb/soft-mask made the mask of values: magnitude")
}

// TestARCC checks ARCC by hand: ROAD is the difference of the orders after the first point, cut off at 0.
func TestARCC(t *testing.T) {
	in := map[string][]stages.Data{
		"maps":  {stagetest.Items(nil, pixels(1, 3, 1, 3), pixels(1, 3, 1, 3))},
		"again": {stagetest.Items(nil, pixels(2, 4, 2, 4), pixels(2, 4, 2, 4))},
		"morf":  {stagetest.Items(imputed("morf", "0,0.2,0.4"), curve(0.9, 0.2, 0.2), curve(0.9, 0.8, 0.8))},
		"lerf":  {stagetest.Items(imputed("lerf", "0,0.2,0.4"), curve(0.9, 0.8, 0.4), curve(0.9, 0.8, 0.4))},
	}
	r := stagetest.Run(t, ARCC, nil, in)
	check(t, r, "road", 1e-12, 0.4, 0)
	check(t, r, "scores", 1e-12, 3/(1+2+2.5), 0)
}

// TestOfficialMaskedInput compares the whole way, from images and maps to scores, with pytorch-grad-cam and
// torch-cam. Percentiles of 20, 40, 60 and 80 remove a pixel more than such shares where these are rounded
// down, so that the shares here are those of the pixels that they remove.
func TestOfficialMaskedInput(t *testing.T) {
	a := golden.Arrays(t, "testdata/masked_input.npz")
	x := golden.Arrays(t, filepath.Join(golden.Dir(t), "models", "smallcnn_io.npz"))["x"].Float32s()
	const pixels, n = 32 * 32, 3 * 32 * 32
	shares := []float64{205. / pixels, 410. / pixels, 614. / pixels, 819. / pixels}
	var images, targets [][]byte
	for i, class := range a["classes"].Int64s() {
		images = append(images, stages.NewTensor(x[i*n:(i+1)*n], 3, 32, 32).Encode())
		targets = append(targets, stages.NewTensor([]int64{class}, 1).Encode())
	}
	base := map[string][]stages.Data{"model": {modeltest.Official(t, "smallcnn", 0)},
		"images": {stagetest.Items(nil, images...)}, "targets": {stagetest.Items(nil, targets...)}}
	with := func(more map[string]stages.Data) map[string][]stages.Data {
		in := map[string][]stages.Data{}
		for port, d := range base {
			in[port] = d
		}
		for port, d := range more {
			in[port] = []stages.Data{d}
		}
		return in
	}
	whole := stagetest.Run(t, perturb.Response, nil, base)
	for _, name := range []string{"method", "smooth"} {
		var maps [][]byte
		for i := range images {
			maps = append(maps, stages.NewTensor(a[name].Float32s()[i*pixels:(i+1)*pixels], 32, 32).Encode())
		}
		masked := stagetest.Run(t, perturb.SoftMask, nil, with(map[string]stages.Data{
			"maps":  stagetest.Items(nil, maps...),
			"whole": stagetest.Items(whole.Facts["curves"], whole.Payloads["curves"]...)}))
		curves := stagetest.Items(masked.Facts["curves"], masked.Payloads["curves"]...)
		var drops, rises float64
		for i, payload := range masked.Payloads["curves"] {
			got, err := metric.Response(masked.Facts["curves"], payload, "probability")
			if err != nil {
				t.Fatal(err)
			}
			same32(t, name+": p", got[0], a["p"].Float64s()[i])
			same32(t, name+": change", got[1]-got[0], a[name+"_change"].Float64s()[i])
			drops += metric.Drop(got[0], got[1]) / 2
			rises += metric.Increase(got[0], got[1]) / 2
		}
		same32(t, name+": average drop", drops, a[name+"_torchcam"].Float64s()[0])
		same32(t, name+": average increase", rises, a[name+"_torchcam"].Float64s()[1])

		again := stagetest.Items(nil, explained(t, masked.Payloads["images"])...)
		read := stagetest.Items(nil, maps...)
		adcc := stagetest.Run(t, ADCC, nil, map[string][]stages.Data{"maps": {read}, "again": {again},
			"masked": {curves}})
		in := map[string][]stages.Data{"maps": {read}, "again": {again}}
		for _, order := range []string{"morf", "lerf"} {
			r := stagetest.Run(t, perturb.Road, &perturb.RoadParams{Shares: shares,
				Order: order, Variant: "paper", Values: "signed", Ties: "index"},
				with(map[string]stages.Data{"maps": stagetest.Items(nil, ranks(t, maps)...)}))
			in[order] = []stages.Data{stagetest.Items(r.Facts["curves"], r.Payloads["curves"]...)}
		}
		arcc := stagetest.Run(t, ARCC, nil, in)
		for i := range images {
			read := func(r stagetest.Result, port string) float64 {
				v, err := stages.ScalarOf(r.Payloads[port][i])
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			same32(t, name+": coherency", read(adcc, "coherency"), a[name+"_coherency"].Float64s()[i])
			same32(t, name+": complexity", read(adcc, "complexity"), a[name+"_complexity"].Float64s()[i])
			for port, want := range map[string]float64{
				"road":   math.Max(0, 2*a[name+"_road"].Float64s()[i]),
				"scores": a[name+"_arcc"].Float64s()[i],
			} {
				if got := read(arcc, port); !(math.Abs(got-want) <= 1e-5) { // of systems solved in float32
					t.Errorf("%s: image %d: %s is %v, want %v", name, i, port, got, want)
				}
			}
		}
	}
}

// same32 checks a number against an official one, of float32.
func same32(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-6) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// explained returns the maps of the method of the official numbers: the mean magnitude of channels.
func explained(t *testing.T, images [][]byte) (maps [][]byte) {
	t.Helper()
	for _, payload := range images {
		image, err := stages.DecodeTensor(payload)
		if err != nil {
			t.Fatal(err)
		}
		v := metric.SumAbs.Of(image.Float64s(), image.Shape[1]*image.Shape[2])
		maps = append(maps, stages.NewTensor(v, image.Shape[1], image.Shape[2]).Encode())
	}
	return maps
}

// ranks returns the places of the maps' pixels.
func ranks(t *testing.T, maps [][]byte) (out [][]byte) {
	t.Helper()
	for _, payload := range maps {
		m, err := stages.DecodeTensor(payload)
		if err != nil {
			t.Fatal(err)
		}
		place := make([]uint32, m.Len())
		for k, pixel := range metric.Order(m.Float64s()) {
			place[pixel] = uint32(k)
		}
		out = append(out, stages.NewTensor(place, m.Shape...).Encode())
	}
	return out
}
