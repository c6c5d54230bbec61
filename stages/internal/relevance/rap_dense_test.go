package relevance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// over is a/b, or 0 if b is 0.
func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// rapDense is relative attributing propagation through one image's dense layer, as in its authors' code;
// paper uses the weights of [RAPPaper].
func (d denseLayer) rapDense(x, r []float64, conv, paper bool) []float64 {
	out := make([]float64, len(x))
	for _, side := range []float64{1, -1} {
		c := make([]float64, len(x))
		for j, row := range d.w {
			var z1, z2 float64
			for i := range x {
				u := plusPart(side * x[i])
				z1 += u * plusPart(row[i])
				z2 -= u * minusPart(row[i])
			}
			p, n := plusPart(r[j]), minusPart(r[j])
			for i := range x {
				u := plusPart(side * x[i])
				up, down := u*plusPart(row[i]), -u*minusPart(row[i])
				switch {
				case paper:
					c[i] += over(up, z1)*over(z1, z1+z2)*r[j] + over(down, z2)*over(z2, z1+z2)*r[j]
				case conv:
					c[i] += over(up, z1)*p + over(down, z2)*over(z2, z1+z2)*(p+n) + over(down, z2)*n
				default:
					c[i] += over(up, z1)*(p+n) + over(down, z2)*over(z2, z1+z2)*(p+n)
				}
			}
		}
		excess, count := 0.0, 0.0
		for i := range c {
			excess += c[i]
			if c[i] != 0 {
				count++
			}
		}
		for j := range r {
			excess -= r[j]
		}
		for i := range c {
			if c[i] != 0 {
				out[i] += c[i] - over(excess, count)
			}
		}
	}
	return out
}

// TestRAPAgainstDense compares the rules of relative attributing propagation with the authors' code in
// float64, including data of both signs, which the official numbers don't cover.
func TestRAPAgainstDense(t *testing.T) {
	for _, layer := range []struct {
		op *Op
		ex Example
	}{
		{opConv, Example{Name: "padded", Inputs: [][]int{{2, 3, 5, 4}, {4, 3, 3, 2}, {4}}, Attrs: []onnx.Attr{
			{Name: "strides", Value: []int64{2, 1}}, {Name: "pads", Value: []int64{1, 1, 0, 0}}}}},
		{opGemm,
			Example{Name: "torch's", Inputs: [][]int{{2, 7}, {5, 7}, {5}},
				Attrs: []onnx.Attr{{Name: "transB", Value: 1}}}},
	} {
		dense := denseOf(layer.op, layer.ex)
		for name, rule := range map[string]LayerRule{"official": {"rap", rapLayer},
			"paper": {"rap-paper", rapPaperLayer}} {
			b, err := prepare(t, layer.op, layer.ex, LRP{Conv: rule, Dense: rule}.Policy(), 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, rectified := range []bool{false, true} {
				x := layer.ex.draw(0, size(layer.ex.Inputs[0]))
				if rectified {
					for i, v := range x {
						x[i] = max(v, 0)
					}
				}
				r := noise(rand.New(rand.NewPCG(5, 5)), size(b.shapes[0]))
				_, back := b.run(t, [][]float32{x}, [][]float32{r})
				var want []float64
				for k := range 2 {
					xk, rk := doubles(x[k*len(x)/2:(k+1)*len(x)/2]), doubles(r[k*len(r)/2:(k+1)*len(r)/2])
					want = append(want, dense.rapDense(xk, rk, layer.op == opConv, name == "paper")...)
				}
				close64(t, fmt.Sprintf("%s %s, rectified %t", layer.op.Type, name, rectified), back[0], want,
					1e-5)
			}
			b.close()
		}
	}
}

// TestRAPBegins compares the rule of the layer at which propagation starts with the authors' code, for one
// class and for all others.
func TestRAPBegins(t *testing.T) {
	ex := Example{Inputs: [][]int{{2, 7}, {5, 7}, {5}}, Attrs: []onnx.Attr{{Name: "transB", Value: 1}}}
	dense := denseOf(opGemm, ex)
	rules := RAP()
	rules.First = LayerRule{}
	b, err := prepare(t, opGemm, ex, rules.Policy(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	x := ex.draw(0, 14)
	counts := []float32{0, 0, 1, 0, 0, 1, 1, 1, 0, 1}
	_, back := b.run(t, [][]float32{x}, [][]float32{counts})
	var want []float64
	for k := range 2 {
		xk, rk := doubles(x[k*7:(k+1)*7]), doubles(counts[k*5:(k+1)*5])
		var pos, neg float64
		for j, row := range dense.w {
			for i := range xk {
				pos += plusPart(xk[i]*row[i]) * rk[j]
				neg += minusPart(xk[i]*row[i]) * rk[j]
			}
		}
		c := make([]float64, 7)
		for j, row := range dense.w {
			var z1, z2 float64
			for i := range xk {
				z1 += plusPart(xk[i]) * plusPart(row[i])
				z2 += plusPart(xk[i]) * minusPart(row[i])
			}
			for i := range xk {
				c[i] += xk[i] * row[i] * rk[j]
				c[i] += plusPart(xk[i]) * plusPart(row[i]) * over(dense.b[j]*rk[j]*over(pos, pos+neg), z1)
				c[i] += plusPart(xk[i]) * minusPart(row[i]) * over(dense.b[j]*rk[j]*over(neg, pos+neg), z2)
			}
		}
		var sum, magnitude float64
		for _, v := range c {
			sum += v
			magnitude += math.Abs(v)
		}
		for _, v := range c {
			want = append(want, math.Abs(v)*sum/magnitude)
		}
	}
	close64(t, "the first layer", back[0], want, 1e-5)
}
