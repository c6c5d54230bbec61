package typeset

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestNumbers(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 1: "1", 0.1: "0.1", 1.0 / 3: "0.333333333", 2e9 / 3: "666666667", 1e20: "1e+20",
		-1.5e-7: "-1.5e-07", 1e-4: "0.0001",
		100: "100", 123456789012: "123456789000", math.Inf(1): "+Inf", math.MaxFloat64: "1.79769313e+308",
	} {
		if got := Format(x, Digits); got != want {
			t.Errorf("Format(%g) = %s, want %s", x, got, want)
		}
	}
	if Format(math.NaN(), Digits) != "" || Format(math.Copysign(0, -1), Digits) != "0" {
		t.Error("undefined or minus zero is written wrongly")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 10000 {
		x := math.Float64frombits(rng.Uint64())
		s := Format(x, Digits)
		y, ok := Parse(s)
		if !ok || Format(y, Digits) != s {
			t.Fatalf("%g is written as %s, and read as %g", x, s, y)
		}
		if !math.IsNaN(x) && !math.IsInf(y, 0) && !(math.Abs(x-y) <= 6e-9*math.Abs(x)) &&
			!(math.Abs(x) <= 1e-300) {
			t.Fatalf("%g is written as %s", x, s)
		}
	}
	for _, s := range []string{"NaN", "x", "1,5", " 1", "0x"} {
		if _, ok := Parse(s); ok {
			t.Errorf("%q is read as a number", s)
		}
	}
}
